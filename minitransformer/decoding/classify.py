"""Which label a sentence has."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from minitransformer.backend import to_host
from minitransformer.config import OWN_IDS, ModelConfig
from minitransformer.decoding.sampling import log_softmax
from minitransformer.tokenizers import Tokenizer

AT_A_TIME = 64  # sentences


def encode_sentences(
    tokenizer: Tokenizer, sentences: Sequence[str], length: int, config: ModelConfig = OWN_IDS
) -> np.ndarray:
    """Ids (B, T), padded: the start, whose output a pooled head reads, and the sentence, `length` ids at most."""
    start = [] if config.start is None else [config.start]
    rows = [[*start, *tokenizer.encode(sentence)][:length] for sentence in sentences]
    width = max(map(len, rows))
    return np.array([row + [config.filler] * (width - len(row)) for row in rows])


def classify(model: Any, tokenizer: Tokenizer, sentences: Sequence[str]) -> np.ndarray:
    """The probability of each of K labels for each sentence -> (N, K). `model` is a BERT with `num_classes` = K + 1."""
    parts = [sentences[start : start + AT_A_TIME] for start in range(0, len(sentences), AT_A_TIME)]
    logits = [to_host(model(encode_sentences(tokenizer, part, model.config.max_len, model.config))) for part in parts]
    return np.exp(log_softmax(np.concatenate(logits)[:, 1:]))  # without class 0, which is padding

"""Which label a sentence has."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from minitransformer.backend import to_host
from minitransformer.decoding.sampling import log_softmax
from minitransformer.tokenizers import Tokenizer
from minitransformer.vocabulary import BOS, PAD

AT_A_TIME = 64  # sentences


def encode_sentences(tokenizer: Tokenizer, sentences: Sequence[str], length: int) -> np.ndarray:
    """Ids (B, T), padded: bos, whose output a pooled head reads, and the sentence, `length` ids at most."""
    rows = [[BOS, *tokenizer.encode(sentence)[: length - 1]] for sentence in sentences]
    width = max(map(len, rows))
    return np.array([row + [PAD] * (width - len(row)) for row in rows])


def classify(model: Any, tokenizer: Tokenizer, sentences: Sequence[str]) -> np.ndarray:
    """The probability of each of K labels for each sentence -> (N, K). `model` is a BERT with `num_classes` = K + 1."""
    parts = [sentences[start : start + AT_A_TIME] for start in range(0, len(sentences), AT_A_TIME)]
    logits = [to_host(model(encode_sentences(tokenizer, part, model.config.max_len))) for part in parts]
    return np.exp(log_softmax(np.concatenate(logits)[:, 1:]))  # without class 0, which is padding

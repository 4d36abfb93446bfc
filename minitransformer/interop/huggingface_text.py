"""Text from a folder with a Hugging Face decoder: its weights, its tokenizer and the token that ends a text."""

import os
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from minitransformer.backend import to_host
from minitransformer.decoding import SlidingState, generate_tokens
from minitransformer.decoding.faster.speculative import Speculation
from minitransformer.interop.huggingface import MODELS, load_huggingface
from minitransformer.interop.huggingface_configs import complete_config, read_config
from minitransformer.interop.huggingface_files import read_json
from minitransformer.interop.huggingface_tokenizers import load_huggingface_tokenizer
from minitransformer.models.since_2017.gpt import GPT
from minitransformer.system.files import kind_of
from minitransformer.tokenizers.base import Tokenizer
from minitransformer.vocabulary import SPECIAL_TOKENS


class Piece(NamedTuple):
    """What one more token adds to a text."""

    text: str  # empty for a token that ends within a character, and for special tokens
    log_prob: float | None  # of the token; None for a last piece without one: a character that was never completed


def is_huggingface_folder(folder: str | os.PathLike[str]) -> bool:
    """Whether `folder` has a config.json that names one of their models."""
    path = Path(folder) / "config.json"
    if kind_of(path) != "file":
        return False
    content = read_json(path)
    return isinstance(content, dict) and "model_type" in content


class TextModel:
    """A GPT with its tokenizer and the tokens that end a text, if there are any.

    Ids that the tokenizer lacks, with which some models pad their vocabulary, have probability 0. Raises ValueError for
    a tokenizer with more ids than the model.
    """

    def __init__(self, model: GPT, tokenizer: Tokenizer) -> None:
        known, size = tokenizer.vocab_size, model.config.vocab_size
        if known > size:
            raise ValueError(f"the tokenizer has {known:,} tokens, and its model only {size:,}")
        own = tokenizer.tokens[: len(SPECIAL_TOKENS)] == SPECIAL_TOKENS
        self.model, self.tokenizer = model, tokenizer
        self.ends = () if own else model.config.ends  # texts of our own tokenizers have no end

    def continue_text(
        self,
        prompt: str,
        max_new_tokens: int,
        choose: Callable[[np.ndarray], np.ndarray] | None = None,
        *,
        no_repeat: int = 0,
        speculation: Speculation | None = None,
    ) -> Iterator[Piece]:
        """Continue `prompt` by at most `max_new_tokens` tokens, a Piece for each.

        `choose` and `no_repeat` are as in `generate_tokens`. With a new `speculation`, the `decoding_state` of another
        model with the same tokenizer guesses; `choose` is then Greedy or Sampling, and `no_repeat` has no effect. The
        text ends after the token of the end of a text, which has no text itself. When max_len tokens have been read,
        the model goes on from the later half of them. Raises ValueError for an empty prompt, or logits that are not
        finite.
        """
        ids = self.tokenizer.encode(prompt)[None]
        if not ids.size:
            raise ValueError("the prompt is empty: give the model at least one token to continue")
        log_probs: list[float] = []

        def new_ids() -> Iterator[int]:
            steps: Any = partial(generate_tokens, no_repeat=no_repeat)
            if speculation is not None:
                steps = speculation.generate_tokens
            for token, log_prob in steps(self.decoding_state(), ids, max_new_tokens, choose, eos=self.ends):
                log_probs.append(float(log_prob[0]))
                yield int(token[0])

        for count, text in enumerate(self.tokenizer.decode_stream(new_ids())):
            yield Piece(text, log_probs[count] if count < len(log_probs) else None)

    def decoding_state(self) -> SlidingState:
        """The model's state for one text: its logits (1, V) are on the host, and V is the tokenizer's vocabulary."""
        return _TextState(self.model, self.tokenizer.vocab_size)


def load_text_model(folder: str | os.PathLike[str]) -> TextModel:
    """Load the decoder in `folder`, a GPT-2 or a later one, with its tokenizer -> TextModel.

    Raises the errors of `load_huggingface` and `load_huggingface_tokenizer`, and ValueError for a model that is not a
    decoder alone.
    """
    theirs = read_config(folder)
    complete_config(theirs)
    if MODELS[theirs["model_type"]] is not GPT:
        remedy = "; `minitransformer embed` and `train --from` take a BERT" if theirs["model_type"] == "bert" else ""
        raise ValueError(f"{folder} has a {theirs['model_type']}, and only a decoder alone can continue a text{remedy}")
    tokenizer = load_huggingface_tokenizer(folder)
    model = load_huggingface(folder)
    assert isinstance(model, GPT)
    return TextModel(model, tokenizer)


class _TextState(SlidingState):
    """A SlidingState for one text, which knows ids below `known` alone.

    It refuses logits that are not finite: finite weights can be too large to compute with.
    """

    def __init__(self, model, known):
        super().__init__(model, 1)
        self.known = known

    def extend_last(self, ids, count):
        """ids (1, n) -> logits (1, count, V), on the host."""
        with np.errstate(over="ignore", invalid="ignore"):
            logits = to_host(super().extend_last(ids, count))
        if not np.isfinite(logits).all():
            raise ValueError("the model computes NaN or infinity: its weights are too large for float32")
        return logits[..., : self.known]

"""Writing token by token: from a model, or from any decoding state. `generate` in sampling.py draws random tokens."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from minitransformer.backend import to_host
from minitransformer.checks import check_integer
from minitransformer.decoding.rereading import DecodingState, End, decoding_state, ends_and_filler


def greedy_decode(
    model: Any, source: np.ndarray, max_new_tokens: int, lengths: Sequence[int] | None = None
) -> np.ndarray:
    """Take the most likely next token at every step, for a batch of sources (encoder-decoder) or prompts (GPT).

    source (B, S) ids, padded at the end -> (B, T) ids with T <= max_new_tokens: each row ends with eos, an `end` of the
    model's configuration, unless it reached max_new_tokens first, and is padded after eos. Stops when all rows have
    ended. Prompts may have `lengths` (B,), see `decoding_state`. Raises ValueError if max_new_tokens is less than 1.
    """
    state = decoding_state(model, source, max_new_tokens, lengths)
    return generate_from(state, state.prompt, max_new_tokens).ids


class Greedy:
    """Always the most likely token."""

    def __call__(self, log_p: np.ndarray) -> np.ndarray:
        """log p (B, V) -> ids (B,)."""
        return log_p.argmax(axis=-1)

    def probabilities(self, log_p: np.ndarray) -> np.ndarray:
        """log p (B, V) -> the limit of low temperatures (B, V): 1 for the most likely token of each row, else 0."""
        return (np.arange(log_p.shape[-1]) == self(log_p)[:, None]).astype(np.float64)

    def draw(self, p: np.ndarray) -> np.ndarray:
        """p (B, V) -> ids (B,)."""
        return p.argmax(axis=-1)


class Generated(NamedTuple):
    """The new tokens. After eos, a row is filled up with padding, or in a model without padding with its end."""

    ids: np.ndarray  # (B, T)
    log_probs: np.ndarray  # (B, T), of each token under the model, before temperature, top-k and top-p; 0 for padding


def generate_from(
    state: DecodingState,
    prompt: np.ndarray,
    max_new_tokens: int,
    choose: Callable[[np.ndarray], np.ndarray] | None = None,
    *,
    eos: End = "model",
    no_repeat: int = 0,
) -> Generated:
    """All that `generate_tokens` yields for these arguments, with T <= max_new_tokens -> Generated."""
    steps = generate_tokens(state, prompt, max_new_tokens, choose, eos=eos, no_repeat=no_repeat)
    ids, log_probs = zip(*steps, strict=True)
    return Generated(np.stack(ids, axis=1), np.stack(log_probs, axis=1))


def generate_tokens(
    state: DecodingState,
    prompt: np.ndarray,
    max_new_tokens: int,
    choose: Callable[[np.ndarray], np.ndarray] | None = None,
    *,
    eos: End = "model",
    no_repeat: int = 0,
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield (ids (B,), log_probs (B,)) step by step, until every row has produced an `eos`.

    The model reads `prompt` (B, n) first: the start token of an encoder-decoder, or a text. `choose` maps
    log p (B, V) to ids (B,); the default is greedy. `eos` is an id or several, by default the ends of the model's
    configuration; with None no row ends early. With `no_repeat` = n > 0 no sequence of n tokens occurs twice, prompt
    included; a row without an allowed token ends. Raises ValueError if max_new_tokens is less than 1 or no_repeat less
    than 0.
    """
    check_integer("max_new_tokens", max_new_tokens, least=1)
    check_integer("no_repeat", no_repeat, least=0)
    choose = choose or Greedy()
    ends, filler = ends_and_filler(getattr(state, "model", None), eos)
    said = ids = prompt
    rows, finished = np.arange(len(prompt)), np.zeros(len(prompt), dtype=bool)
    for _ in range(max_new_tokens):
        log_p = choices = log_softmax(to_host(state.extend(ids)))
        if no_repeat:
            choices = forbid_repeats(log_p, said, no_repeat)
            nothing_allowed = np.isneginf(choices).all(axis=-1)
            choices[nothing_allowed] = log_p[nothing_allowed]  # the filler is written there instead
            finished |= nothing_allowed
        token = choose(choices).astype(prompt.dtype)
        log_probs = log_p[rows, token]
        token[finished], log_probs[finished] = filler, 0
        yield token, log_probs
        for end in ends:
            finished |= token == end
        if finished.all():
            return
        ids = token[:, None]
        said = np.concatenate([said, ids], axis=1) if no_repeat else said


def log_softmax(logits: np.ndarray) -> np.ndarray:
    """log p, where p = softmax(logits): logits (..., V) on the host -> (..., V).

    Raises ArithmeticError for a row whose largest logit is nan or infinite: it has no probabilities.
    """
    largest = logits.max(axis=-1, keepdims=True)
    if not np.isfinite(largest).all():
        bad = largest[~np.isfinite(largest)]
        raise ArithmeticError(f"{bad.size} of {largest.size} rows of logits are not finite: their maximum is {bad[0]}")
    shifted = logits - largest
    shifted -= np.log(np.exp(shifted).sum(axis=-1, keepdims=True))
    return shifted


def forbid_repeats(log_p: np.ndarray, ids: np.ndarray, length: int) -> np.ndarray:
    """Forbid every next token that would repeat a sequence of `length` tokens of `ids` (B, T) -> log p (B, V).

    In each row, all tokens that have already followed its last length - 1 tokens get probability 0. A row without an
    allowed token is -inf everywhere.
    """
    log_p = log_p.copy()
    runs = ids.shape[1] - length + 1
    if runs <= 0:
        return log_p
    matches = np.ones((len(ids), runs), dtype=bool)  # whether the last length - 1 tokens also occur here
    for i in range(length - 1):
        matches &= ids[:, i : i + runs] == ids[:, runs + i, None]
    rows, starts = matches.nonzero()
    log_p[rows, ids[rows, starts + length - 1]] = -np.inf
    return log_p

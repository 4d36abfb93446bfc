"""Generating token by token: from a model, or from any decoding state (see decoding/rereading.py).

greedy_decode(model, source, n)     the answers to sources, or to prompts: always the most likely token
generate(model, prompt, n)          samples what comes after a prompt, also beyond the length of training
generate_from(state, prompt, n)     both of them, from a state, with log probabilities
generate_tokens(state, prompt, n)   the same, token by token
"""

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from minitransformer.backend import to_host
from minitransformer.checks import check_integer
from minitransformer.decoding.rereading import (
    DecodingState,
    End,
    SlidingState,
    decoding_state,
    ends_and_filler,
    reads_sources,
)
from minitransformer.decoding.sampling import TEMPERATURE, TOP_P, Greedy, Sampling, forbid_repeats, log_softmax


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


def generate(
    model: Any,
    prompt: np.ndarray,
    max_new_tokens: int,
    choose: Callable[[np.ndarray], np.ndarray] | None = None,
    lengths: Sequence[int] | None = None,
) -> np.ndarray:
    """Sample the ids that `model` writes after the ids of `prompt`: (T,) -> (N,), or (B, T) -> (B, N).

    N = max_new_tokens, also beyond the length that a model was trained on (see SlidingState). `choose` maps
    log p (B, V) to ids (B,); the default draws with temperature 0.8 and top-p 0.9, always the same, and Greedy() takes
    the most likely one. Shorter rows are padded at their end: with the padding of the model's configuration, or with
    any id if `lengths` (B,) are given. Raises ValueError for a prompt without tokens or of another shape, for padding
    in a text beyond the length of training, and if max_new_tokens is less than 1.
    """
    rows = np.atleast_2d(prompt)
    if rows.ndim != 2 or not rows.size:
        raise ValueError(f"prompt must be ids (T,) or (B, T), at least one in each row, got shape {np.shape(prompt)}")
    state: Any = decoding_state(model, rows, max_new_tokens, lengths)
    first, max_len = state.prompt, getattr(getattr(model, "config", None), "max_len", math.inf)
    if rows.shape[1] + max_new_tokens > max_len and not reads_sources(model):
        if np.any(state.padding):
            raise ValueError(f"prompts of several lengths can be continued up to max_len = {max_len}")
        state = SlidingState(model, len(rows))
    choose = choose or Sampling(np.random.default_rng(0), TEMPERATURE, top_p=TOP_P)
    ids = generate_from(state, first, max_new_tokens, choose, eos=None).ids
    return ids if np.ndim(prompt) == 2 else ids[0]


class Generated(NamedTuple):
    """The new tokens: each row ends in eos, unless max_new_tokens came first, and is padded after eos.

    A model without padding has its end again there.
    """

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

    The model reads `prompt` (B, n) first: the start token for an encoder-decoder, and else a text. `choose` maps
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

"""Generating token by token, from any decoding state (see decoding/rereading.py), and filling in masked tokens."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from minitransformer.backend import to_host
from minitransformer.checks import check_integer
from minitransformer.config import special_ids
from minitransformer.decoding.rereading import DecodingState, End, decoding_state, ends_and_filler
from minitransformer.decoding.sampling import Greedy, forbid_repeats, log_softmax


class Generated(NamedTuple):
    """The new tokens: each row ends in eos, unless max_new_tokens came first, and is padded after eos.

    A model without padding has its end again there.
    """

    ids: np.ndarray  # (B, T)
    log_probs: np.ndarray  # (B, T), of each token under the model, before temperature, top-k and top-p; 0 for padding


def generate(
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

    The model reads `prompt` (B, n) first: bos for an encoder-decoder, the beginning of a text for GPT. `choose` maps
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


def greedy_decode(
    model: Any, source: np.ndarray, max_new_tokens: int, lengths: Sequence[int] | None = None
) -> np.ndarray:
    """Take the most likely next token at every step, for a batch of sources (encoder-decoder) or prompts (GPT).

    source (B, S) ids, padded at the end -> (B, T) ids with T <= max_new_tokens: each row ends with eos, unless it
    reached max_new_tokens first, and is padded after eos. Stops when all rows have produced eos. Prompts may have
    `lengths` (B,), see `decoding_state`. Raises ValueError if max_new_tokens is less than 1.
    """
    state = decoding_state(model, source, max_new_tokens, lengths)
    return generate(state, state.prompt, max_new_tokens).ids


class FilledMasks(NamedTuple):
    """The tokens that are most likely at each of M masks, in descending order."""

    ids: np.ndarray  # (M, K)
    probabilities: np.ndarray  # (M, K), under the model


def fill_mask(model: Any, ids: np.ndarray, mask_id: int, top_k: int = 5) -> FilledMasks:
    """The `top_k` = K most likely tokens at each place of ids (T,) that holds `mask_id`, M in all -> FilledMasks.

    `model` maps ids (B, T) on the host to logits (B, T, V), as BERT does. It reads the text once, so each mask is
    filled as if the others stayed masked. Special tokens and the mask itself are never chosen; K is at most the number
    of other tokens. Raises ValueError if there is no mask or top_k is less than 1, and as the model does.
    """
    check_integer("top_k", top_k, least=1)
    places = np.flatnonzero(ids == mask_id)
    if not places.size:
        raise ValueError(f"there is no mask to fill: no id is mask_id = {mask_id}")
    p = np.exp(log_softmax(to_host(model(ids[None]))[0, places]))
    never = sorted({*special_ids(model).special, mask_id})
    ranked = np.where(np.isin(np.arange(p.shape[1]), never), -1.0, p)
    best = np.argsort(-ranked, axis=1, kind="stable")[:, : min(top_k, p.shape[1] - len(never))]
    return FilledMasks(best, np.take_along_axis(p, best, axis=1))

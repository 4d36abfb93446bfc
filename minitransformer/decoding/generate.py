"""Generating token by token, from any model whose state can be extended (see decoding/incremental.py)."""

from typing import NamedTuple

import numpy as np

from minitransformer.backend import to_host
from minitransformer.decoding.sampling import Greedy, forbid_repeats, log_softmax
from minitransformer.vocabulary import EOS, PAD


class Generated(NamedTuple):
    """What was said: each row ends in eos, if there was room, and is padded behind it."""

    ids: np.ndarray  # (B, T)
    log_probs: np.ndarray  # (B, T), of each token as the model sees it, before sharpening and cutting; 0 for padding


def generate(state, prompt, max_new_tokens, choose=None, **options):
    """All that `generate_tokens` yields -> Generated."""
    ids, log_probs = zip(*generate_tokens(state, prompt, max_new_tokens, choose, **options), strict=True)
    return Generated(np.stack(ids, axis=1), np.stack(log_probs, axis=1))


def generate_tokens(state, prompt, max_new_tokens, choose=None, *, eos=EOS, no_repeat=0):
    """Yield (ids (B,), log_probs (B,)) step by step, until all rows have said `eos`.

    `prompt` (B, n) is what the model reads first: bos for an encoder-decoder, the beginning of a text for GPT.
    `choose` takes log p (B, V) to ids (B,); greedy by default. With `eos=None` nothing ends a row early. With
    `no_repeat` = n > 0 no run of n tokens comes twice, prompt included; a row that has nothing else to say ends.
    Raises ValueError for max_new_tokens or no_repeat that mean nothing.
    """
    if max_new_tokens < 1:
        raise ValueError(f"max_new_tokens must be at least 1, got {max_new_tokens}")
    if no_repeat < 0:
        raise ValueError(f"no_repeat must be 0 or more, got {no_repeat}")
    choose = choose or Greedy()
    said = ids = prompt
    rows, finished = np.arange(len(prompt)), np.zeros(len(prompt), dtype=bool)
    for _ in range(max_new_tokens):
        log_p = choices = log_softmax(to_host(state.extend(ids)))
        if no_repeat:
            choices = forbid_repeats(log_p, said, no_repeat)
            speechless = np.isneginf(choices).all(axis=-1)
            choices[speechless] = log_p[speechless]  # whatever they choose is not said
            finished |= speechless
        token = choose(choices).astype(prompt.dtype)
        log_probs = log_p[rows, token]
        token[finished], log_probs[finished] = PAD, 0
        yield token, log_probs
        if eos is not None:
            finished |= token == eos
        if finished.all():
            return
        ids = token[:, None]
        said = np.concatenate([said, ids], axis=1) if no_repeat else said

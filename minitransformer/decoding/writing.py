"""Continuing a text with a language model: ids in, ids out."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minitransformer.decoding.faster.incremental import GPTState, SlidingState
from minitransformer.decoding.generate import generate as generate_from
from minitransformer.decoding.rereading import decoding_state
from minitransformer.decoding.sampling import TEMPERATURE, TOP_P, Sampling


def generate(
    model: Any,
    prompt: np.ndarray,
    max_new_tokens: int,
    choose: Callable[[np.ndarray], np.ndarray] | None = None,
    lengths: Sequence[int] | None = None,
) -> np.ndarray:
    """The ids that `model` writes after the ids of `prompt`: (T,) -> (N,), or (B, T) -> (B, N).

    N = max_new_tokens, also beyond the length that a GPT was trained on (see SlidingState). `choose` maps log p (B, V)
    to ids (B,); the default draws with temperature 0.8 and top-p 0.9, always the same, and Greedy() takes the
    most likely one. Shorter rows are padded at their end: with the padding of the model's configuration, or with any id
    if `lengths` (B,) are given. Raises ValueError for a prompt without tokens or of another shape, for padding in a
    text beyond the length of training, and if max_new_tokens is less than 1.
    """
    rows = np.atleast_2d(prompt)
    if rows.ndim != 2 or not rows.size:
        raise ValueError(f"prompt must be ids (T,) or (B, T), at least one in each row, got shape {np.shape(prompt)}")
    state: Any = decoding_state(model, rows, max_new_tokens, lengths)
    if isinstance(state, GPTState) and rows.shape[1] + max_new_tokens > model.config.max_len:
        if state.padding is not None:
            raise ValueError(f"prompts of several lengths can be continued up to max_len = {model.config.max_len}")
        state = SlidingState(model, len(rows))
    choose = choose or Sampling(np.random.default_rng(0), TEMPERATURE, top_p=TOP_P)
    ids = generate_from(state, getattr(state, "prompt", rows), max_new_tokens, choose, eos=None).ids
    return ids if np.ndim(prompt) == 2 else ids[0]

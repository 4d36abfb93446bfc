"""Greedy decoding: always take the most likely token."""

import numpy as np

from minitransformer.decoding.generate import generate
from minitransformer.decoding.interfaces import DecodingModel


def greedy_decode(model: DecodingModel, source: np.ndarray, max_new_tokens: int) -> np.ndarray:
    """Take the most likely next token at every step, for a batch of sources (encoder-decoder) or prompts (GPT).

    source (B, S) ids, padded at the end -> (B, T) ids with T <= max_new_tokens: each row ends with eos, unless it
    reached max_new_tokens first, and is padded after eos. Stops when all rows have produced eos. Raises ValueError if
    max_new_tokens is less than 1.
    """
    state = model.decoding_state(source, max_new_tokens)
    return generate(state, state.prompt, max_new_tokens).ids

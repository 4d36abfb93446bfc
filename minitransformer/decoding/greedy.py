"""Greedy decoding of an encoder-decoder: always take the likeliest token."""

import numpy as np

from minitransformer.decoding.generate import generate
from minitransformer.models.config import BOS


def greedy_decode(model, source, max_new_tokens):
    """The likeliest next token, again and again, for a batch of sources at once.

    source (B, S) ids -> (B, T) ids with T <= max_new_tokens, each row ending in eos (if there was room) and padded
    behind it. Stops when all rows have said eos.
    """
    bos = np.full((len(source), 1), BOS, dtype=source.dtype)
    return generate(model.begin(source, max_new_tokens), bos, max_new_tokens).ids


def exact_match(decoded, expected):
    """The share of rows in which decoded (B, T) says expected (B, T') to the last token, eos included."""
    width = max(decoded.shape[1], expected.shape[1])
    decoded, expected = (np.pad(x, ((0, 0), (0, width - x.shape[1]))) for x in (decoded, expected))
    return float((decoded == expected).all(axis=1).mean())

"""Greedy decoding: always take the likeliest token."""

import numpy as np

from minitransformer.backend import to_host
from minitransformer.models.config import BOS, EOS, PAD


def greedy_decode(model, source, max_new_tokens):
    """The likeliest next token, again and again, for a batch of sources at once.

    source (B, S) ids -> (B, T) ids with T <= max_new_tokens, each row ending in eos (if there was room) and padded
    behind it. The source is encoded once; every step reads the whole target so far again. Stops when all rows have
    said eos.
    """
    if max_new_tokens < 1:
        raise ValueError(f"max_new_tokens must be at least 1, got {max_new_tokens}")
    memory, _ = model.encode(source)
    target = np.full((len(source), 1), BOS, dtype=source.dtype)
    finished = np.zeros(len(source), dtype=bool)
    for _ in range(max_new_tokens):
        logits, _ = model.decode(target, memory, source)
        likeliest = to_host(logits[:, -1].argmax(axis=-1))
        token = np.where(finished, PAD, likeliest)
        target = np.concatenate([target, token[:, None]], axis=1)
        finished |= token == EOS
        if finished.all():
            break
    return target[:, 1:]


def exact_match(decoded, expected):
    """The share of rows in which decoded (B, T) says expected (B, T') to the last token, eos included."""
    width = max(decoded.shape[1], expected.shape[1])
    decoded, expected = (np.pad(x, ((0, 0), (0, width - x.shape[1]))) for x in (decoded, expected))
    return float((decoded == expected).all(axis=1).mean())

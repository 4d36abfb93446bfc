"""Exercise 22: the backward pass of one tile.

Difficulty 3 of 5, 30 minutes. See lesson 22, "Backward: one number for each row".

Forward has read the keys a few at a time and kept no weights, only o and the logarithm of each row's denominator,
logsum_t = ln Σ_j exp(s_tj), over all keys. On the way back you get one tile of keys at a time. Compute what it adds
to the gradients; the loop that goes from tile to tile is given.

    minitransformer check 22_tiled_backward
"""

import math

import numpy as np


def tiles(length, size):
    """The slices of `size` keys, the last of which may be smaller."""
    return [slice(start, start + size) for start in range(0, length, size)]


def tiled_attention(q, k, v, size):
    """q (B, T, D), k and v (B, S, D) -> o (B, T, D), and a cache for backward without any weights."""
    m, total, o = -np.inf, 0.0, 0.0
    for keys in tiles(k.shape[1], size):
        s = q @ k[:, keys].swapaxes(-1, -2) / math.sqrt(q.shape[-1])
        m_before, m = m, np.maximum(m, s.real.max(axis=-1, keepdims=True))
        weights, factor = np.exp(s - m), np.exp(m_before - m)
        total = factor * total + weights.sum(axis=-1, keepdims=True)
        o = factor * o + weights @ v[:, keys]
    return o / total, (q, k, v, o / total, m + np.log(total), size)


def tile_backward(do, q, k, v, o, logsum):
    """do, q, o (B, T, D), logsum (B, T, 1), and the k and v (B, size, D) of this tile alone.

    -> what the tile adds to dq (B, T, D), and dk and dv (B, size, D) of its keys.
    """
    raise NotImplementedError("make the weights of the tile again first: the scores, and then which exponential?")


def tiled_backward(do, cache):
    """Given: dq (B, T, D), dk and dv (B, S, D), put together from what `tile_backward` gives for each tile."""
    q, k, v, o, logsum, size = cache
    dq, dk, dv = np.zeros_like(q), np.zeros_like(k), np.zeros_like(v)
    for keys in tiles(k.shape[1], size):
        from_tile, dk[:, keys], dv[:, keys] = tile_backward(do, q, k[:, keys], v[:, keys], o, logsum)
        dq += from_tile
    return dq, dk, dv

"""Exercise 22: merging two reports.

Difficulty 2 of 5, 20 minutes. See lesson 22, "A row in two halves" and "Merging two reports".

Two readers have each seen some of the keys of the same queries, at least one. Each has forgotten the keys, and hands in
the largest score m of each query, the total Σ_j exp(s_j − m) that it divided by, and its answer o, a weighted mean of
its values. Write what a single reader of all keys would have handed in.

    minitransformer check 22_merge
"""

import math

import numpy as np


def attend(q, k, v):
    """One reader: q (B, T, D), k and v (B, S, D) -> m (B, T), total (B, T) and o (B, T, D)."""
    s = q @ k.swapaxes(-1, -2) / math.sqrt(q.shape[-1])
    m = s.max(axis=-1)
    weights = np.exp(s - m[..., None])
    total = weights.sum(axis=-1)
    return m, total, weights @ v / total[..., None]


def merge_states(left, right):
    """Two reports (m, total, o) on different keys -> m (B, T), total (B, T) and o (B, T, D) of all keys.

    Sometimes the left reader has seen the largest score of a query, and sometimes the right one.
    """
    m_left, total_left, o_left = left
    m_right, total_right, o_right = right
    raise NotImplementedError("write m first. Then ask what each total would be, had its reader subtracted this m")

"""Exercise 19: attention whose heads share their keys and values, backward.

Difficulty 3 of 5, 30 minutes. See lesson 19, "A gate, and shared keys".

There are H heads of queries, and only G heads of keys and values. Head h of the queries looks at the head h // (H/G) of
the keys, so each of these serves H/G heads in a row. The forward makes a copy for each of them, and then it is the
attention of lesson 06.

    minitransformer check 19_grouped_heads_backward
"""

import math

import numpy as np


def grouped_attention(q, k, v):
    """q (B, H, T, D), k (B, G, S, D), v (B, G, S, width) for a G that divides H -> o (B, H, T, width), and a cache."""
    group = q.shape[1] // k.shape[1]
    copies_of_k, copies_of_v = np.repeat(k, group, axis=1), np.repeat(v, group, axis=1)
    s = q @ copies_of_k.swapaxes(-1, -2) / math.sqrt(q.shape[-1])
    p = np.exp(s - s.real.max(axis=-1, keepdims=True))
    p = p / p.sum(axis=-1, keepdims=True)
    return p @ copies_of_v, (q, k, v, p)


def grouped_attention_backward(do, cache):
    """do (B, H, T, width), which is dLoss/do -> dq, dk and dv, each with the shape of its array."""
    q, k, v, p = cache  # p (B, H, T, S)
    raise NotImplementedError("write it for copies first, as in lesson 06: what is left to do for the shared ones?")

"""Exercise 16: one more token, with kept keys and values.

Difficulty 3 of 5, 20 minutes. See lesson 16, "Keys that never change".

The forward is given for whole texts: positions are added, and each token attends to itself and to all before it. In
decoding the tokens come one by one, and the keys and values of the old ones are kept. Write the step for one new token.
It returns what the forward's last row would be, without computing any other row again.

    minitransformer check 16_kv_cache
"""

import math

import numpy as np


def softmax(s):
    """s (..., S) -> positive numbers of that shape, which sum to 1 along the last axis."""
    p = np.exp(s - s.max(axis=-1, keepdims=True))
    return p / p.sum(axis=-1, keepdims=True)


def attention(x, W, P):
    """x (B, T, C); W = (W_q (C, D), W_k (C, D), W_v (C, E)); P (max_len, C), a vector for each position from 0 on.

    -> o (B, T, E), K (B, T, D), V (B, T, E)
    """
    T = x.shape[1]
    x = x + P[:T]
    q, K, V = (x @ matrix for matrix in W)
    s = q @ K.swapaxes(-1, -2) / math.sqrt(q.shape[-1])  # (B, T, T)
    p = softmax(np.where(np.tri(T, dtype=bool), s, -np.inf))
    return p @ V, K, V


def extend(x, K, V, W, P):
    """The new token x (B, C), and K (B, t, D) and V (B, t, E) of the t tokens before it; W and P as above.

    -> o (B, E), and the keys and values to be kept for the next token, K (B, t + 1, D) and V (B, t + 1, E)
    """
    W_q, W_k, W_v = W
    B, t, D = K.shape
    raise NotImplementedError("where does the new token stand? Add its position's vector, then make its q, k and v")

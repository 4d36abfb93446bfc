"""Exercise 16: one more token, with kept keys and values.

Difficulty 3 of 5, 20 minutes. See lesson 16, "Keys that never change".

The forward is given for whole texts: it adds positions, and each token attends to itself and to all tokens before it.
When a model writes, tokens come one by one, and the keys and values of the old tokens are kept. Write the step for one
new token. It returns what the last row of the forward would be, but it computes no other row again.

    minitransformer check 16_kv_cache
"""

import math

import numpy as np


def softmax(s):
    """s (..., S) -> weights of the same shape, which sum to 1 along the last axis."""
    p = np.exp(s - s.max(axis=-1, keepdims=True))
    return p / p.sum(axis=-1, keepdims=True)


def attention(x, W, PE):
    """x (B, T, C), W = (W_q (C, D), W_k (C, D), W_v (C, width)), PE (max_len, C) a vector for each position from 0 on.

    -> o (B, T, width), k (B, T, D), v (B, T, width)
    """
    T = x.shape[1]
    x = x + PE[:T]
    q, k, v = (x @ matrix for matrix in W)
    s = q @ k.swapaxes(-1, -2) / math.sqrt(q.shape[-1])  # (B, T, T)
    p = softmax(np.where(np.tri(T, dtype=bool), s, -np.inf))
    return p @ v, k, v


def extend(x, k, v, W, PE):
    """The new token x (B, C), and k (B, T, D) and v (B, T, width) of the T tokens before it; W and PE as above.

    -> o (B, width), and the keys and values to keep for the next token, k (B, T + 1, D) and v (B, T + 1, width)
    """
    W_q, W_k, W_v = W
    B, T, D = k.shape
    raise NotImplementedError(
        "which position does the new token have? Add its vector, then make the token's q, k and v"
    )

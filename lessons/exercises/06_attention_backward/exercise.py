"""Exercise 06: the backward pass of attention.

Difficulty 3 of 5, 30 minutes. See lesson 06, "The price of a look" and the two sections after it.

The forward is given, for one head: scores s = q kᵀ / √D, weights p = softmax(s), answers o = p v. Write its backward
pass. If that is too much at once, start with 06_attention_steps, which goes back through one step at a time.

    minitransformer check 06_attention_backward
"""

import math

import numpy as np


def attention(q, k, v):
    """q (B, T, D), k (B, S, D), v (B, S, width) -> o (B, T, width), and a cache for backward."""
    s = q @ k.swapaxes(-1, -2) / math.sqrt(q.shape[-1])  # (B, T, S)
    p = np.exp(s - s.real.max(axis=-1, keepdims=True))
    p /= p.sum(axis=-1, keepdims=True)
    return p @ v, (q, k, v, p)


def attention_backward(do, cache):
    """do (B, T, width), which is dLoss/do -> dq, dk, dv, with the shapes of q, k, v."""
    q, k, v, p = cache
    raise NotImplementedError(
        "write dv first: it needs only p and do. Then go back through p v, the softmax and the scores"
    )

"""Exercise 07: attention backward, with a mask and empty rows.

Difficulty 3 of 5, 30 minutes. See lesson 07, "Left out, forward and backward".

The forward is given, for one head: a forbidden score is left out of the softmax, and a query that may look at nothing
gets the output 0. To save memory it keeps no weights, so backward has to make them again. Write it. No gradient may be
NaN, and where nothing was looked at, it is 0.

    minitransformer check 07_masked_attention_backward
"""

import math

import numpy as np


def masked_attention(q, k, v, allowed):
    """q (B, T, D), k (B, S, D), v (B, S, E), allowed (B, T, S), True = may look -> y (B, T, E), and a cache."""
    s = np.where(allowed, q @ k.swapaxes(-1, -2) / math.sqrt(q.shape[-1]), -np.inf)  # (B, T, S)
    largest = s.real.max(axis=-1, keepdims=True)  # -inf in an empty row
    e = np.exp(s - np.where(np.isfinite(largest), largest, 0.0))
    total = e.sum(axis=-1, keepdims=True)  # 0 in an empty row
    return e / np.where(total == 0.0, 1.0, total) @ v, (q, k, v, allowed)


def masked_attention_backward(dy, cache):
    """dy (B, T, E), which is dLoss/dy -> dq, dk, dv, of the shapes of q, k, v."""
    q, k, v, allowed = cache
    raise NotImplementedError(
        "make the weights p again first, just as the forward does. Then ask which of lesson 06's lines need the mask"
    )

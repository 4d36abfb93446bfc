"""Exercise 07: attention backward, with a mask and empty rows.

Difficulty 3 of 5, 30 minutes. See lesson 07, "Left out, forward and backward" and "In code, with an empty row".

The forward is given, for one head. A forbidden score is left out of the softmax, and a query that may look at nothing
gets the answer 0. To save memory, the forward does not keep the weights, so backward must compute them again. Write it.
No gradient may be NaN. Where nothing was looked at, it is 0.

    minitransformer check 07_masked_attention_backward
"""

import math

import numpy as np


def masked_attention(q, k, v, allowed):
    """q (B, T, D), k (B, S, D), v (B, S, width), allowed (B, T, S), True = may look -> o (B, T, width), and a cache."""
    s = np.where(allowed, q @ k.swapaxes(-1, -2) / math.sqrt(q.shape[-1]), -np.inf)  # (B, T, S)
    largest = s.real.max(axis=-1, keepdims=True)  # -inf in an empty row
    p = np.exp(s - np.where(np.isfinite(largest), largest, 0.0))
    total = p.sum(axis=-1, keepdims=True)  # 0 in an empty row
    return p / np.where(total == 0.0, 1.0, total) @ v, (q, k, v, allowed)


def masked_attention_backward(do, cache):
    """do (B, T, width), which is dLoss/do -> dq, dk, dv, with the shapes of q, k, v."""
    q, k, v, allowed = cache
    raise NotImplementedError(
        "compute the weights p again first, as the forward does. Then ask: which lines of lesson 06 need the mask?"
    )

"""Exercise 17: additive attention, backward.

Difficulty 3 of 5, 30 minutes. See lesson 17, "The first attention".

Bahdanau, Cho and Bengio (2014) compare a query with a key by adding them. A tanh and one vector, the scorer, make a
number of the sum. The rest is as in lesson 06: a softmax, and a mean of the values. The forward is given for one head;
write its backward pass.

    minitransformer check 17_additive_attention_backward
"""

import numpy as np


def softmax(s):
    """s (B, T, S) -> weights p (B, T, S), whose rows sum to 1."""
    p = np.exp(s - s.real.max(axis=-1, keepdims=True))
    return p / p.sum(axis=-1, keepdims=True)


def additive_attention(q, k, v, scorer):
    """q (B, T, D), k (B, S, D), v (B, S, width), scorer (D,) -> o (B, T, width), and a cache for backward."""
    match = np.tanh(q[:, :, None, :] + k[:, None, :, :])  # (B, T, S, D)
    p = softmax(match @ scorer)
    return p @ v, (v, scorer, match, p)


def additive_attention_backward(do, cache):
    """do (B, T, width), which is dLoss/do -> dq (B, T, D), dk (B, S, D), dv (B, S, width), dscorer (D,)."""
    v, scorer, match, p = cache
    raise NotImplementedError(
        "dv and ds are those of lesson 06. Then ask: which scores does one entry of a query reach, and through what?"
    )

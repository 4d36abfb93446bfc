"""Exercise 03: the backward pass of softmax.

Difficulty 2 of 5, 15 minutes. See lesson 03, "One logit moves every probability".

The forward is given, for N rows of V logits: exponentials, divided by their sum along the row. For the backward pass it
keeps p alone. Write the backward pass. You need no matrix of V by V numbers.

    minitransformer check 03_softmax_backward
"""

import numpy as np


def softmax(z):
    """z (N, V) -> p (N, V), whose rows sum to 1, and p again as the cache for backward."""
    p = np.exp(z - z.real.max(axis=-1, keepdims=True))
    p = p / p.sum(axis=-1, keepdims=True)
    return p, p


def softmax_backward(dp, p):
    """dp (N, V), which is dLoss/dp, and p (N, V) from the forward -> dz (N, V)."""
    raise NotImplementedError("take one row and move one of its logits: which entries of p move, and how?")

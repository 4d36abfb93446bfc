"""Exercise 04: one table for the way in and the way out.

Difficulty 3 of 5, 25 minutes. See lesson 04, "Three gradients for one row".

The forward is given, a model of three lines that uses its table E twice: it looks the tokens up, x = s E[ids], takes
h = tanh(x), and scores all tokens, z = h Eᵀ. Write its backward: one gradient for the one table. The slope of tanh is
1 - h², entry by entry.

    minitransformer check 04_tied_backward
"""

import numpy as np


def tied(ids, E, s):
    """ids (B, T), integers from 0 to V - 1, E (V, C), s a number -> z (B, T, V), and a cache for backward."""
    h = np.tanh(s * E[ids])  # (B, T, C)
    return h @ E.T, (ids, E, s, h)


def tied_backward(dz, cache):
    """dz (B, T, V), which is dLoss/dz -> dE (V, C)."""
    ids, E, s, h = cache
    raise NotImplementedError("pretend that there are two tables, one for the way out and one for the way in")

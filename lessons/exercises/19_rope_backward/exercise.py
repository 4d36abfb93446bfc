"""Exercise 19: the way back through a rotation.

Difficulty 2 of 5, 15 minutes. See lesson 19, "Turn instead of add" and "Turning back".

RoPE takes the features of a query or key in pairs, 0 and 1, 2 and 3 and so on, and turns each pair by an angle that
grows with the position. The angles come in as two tables, their cosines and sines. Both are fixed, so the only gradient
is that of x.

    minitransformer check 19_rope_backward
"""

import numpy as np


def rotate(x, cos, sin):
    """x (B, T, D) for an even D, cos and sin (T, D/2) -> y (B, T, D), and a cache for backward."""
    y = np.empty_like(x)
    first, second = x[..., 0::2], x[..., 1::2]
    y[..., 0::2] = first * cos - second * sin
    y[..., 1::2] = first * sin + second * cos
    return y, (cos, sin)


def rotate_backward(dy, cache):
    """dy (B, T, D), which is dLoss/dy -> dx (B, T, D)."""
    cos, sin = cache
    raise NotImplementedError("take one pair first: which two entries of y does the first feature reach?")

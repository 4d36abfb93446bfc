"""Exercise 02: the backward pass of the linear layer.

Difficulty 2 of 5, 20 minutes. See lesson 02, "Follow each number to the loss".

Two forwards are given: the linear layer y = x W + b, for B sequences of T tokens, and mix, which is the same without b
and with a W that is square, as in attention's projections. Write their backwards. In the first one the shapes nearly
force the answer. In the second one no shape will complain.

    minitransformer check 02_linear_backward
"""

import numpy as np


def linear(x, W, b):
    """x (B, T, I), W (I, O), b (O,) -> y (B, T, O), and a cache for backward."""
    return x @ W + b, (x, W)


def linear_backward(dy, cache):
    """dy (B, T, O), which is dLoss/dy -> dx (B, T, I), dW (I, O), db (O,)."""
    x, W = cache
    raise NotImplementedError("begin with dx: each token goes back alone. dW and db then gather from all tokens")


def mix(x, W):
    """x (B, T, C), W (C, C) -> y (B, T, C), and a cache for backward."""
    return x @ W, (x, W)


def mix_backward(dy, cache):
    """dy (B, T, C) -> dx (B, T, C), dW (C, C)."""
    x, W = cache
    raise NotImplementedError("write one entry with its indices first: over which index does each sum run?")

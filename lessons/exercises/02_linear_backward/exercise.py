"""Exercise 02: the backward pass of the linear layer.

Difficulty 2 of 5, 20 minutes. See lesson 02, "Follow each number to the loss" and "The shapes nearly know it".

Two forwards are given. The first is the linear layer y = x W + b, for B sequences of T tokens. The second, `mix`, has
no b, and its W is square, as the matrices of attention are. Write their backward passes. In the first one the shapes
nearly force the answer. In the second one a wrong answer can have the right shape.

    minitransformer check 02_linear_backward
"""

import numpy as np


def linear(x, W, b):
    """x (B, T, C), W (C, F), b (F,) -> y (B, T, F), and a cache for backward."""
    return x @ W + b, (x, W)


def linear_backward(dy, cache):
    """dy (B, T, F), which is dLoss/dy -> dx (B, T, C), dW (C, F), db (F,)."""
    x, W = cache
    raise NotImplementedError("start with dx, in which tokens stay apart. Then write dW and db, which all tokens share")


def mix(x, W):
    """x (B, T, C), W (C, C) -> y (B, T, C), and a cache for backward."""
    return x @ W, (x, W)


def mix_backward(dy, cache):
    """dy (B, T, C) -> dx (B, T, C), dW (C, C)."""
    x, W = cache
    raise NotImplementedError(
        "write one entry of dx and one of dW with their indices: which index does each sum run over?"
    )

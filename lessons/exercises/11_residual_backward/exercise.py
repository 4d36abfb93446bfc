"""Exercise 11: the backward pass of Add & Norm, twice.

Difficulty 2 of 5, 20 minutes. See lesson 11, "The norm that moved".

One sub-layer with its dropout, its residual connection and its LayerNorm, in the two ways of lesson 11. You need no
formula of any piece: each piece's forward returns its result AND a function `back`, which goes back through it, from
the gradient of what came out to the gradient of what went in. What is yours is to join them.

    minitransformer check 11_residual_backward
"""

import numpy as np

from minitransformer import functional


def sublayer(x, W1, W2):
    """A small network. x (B, T, C), W1 (C, F), W2 (F, C) -> f (B, T, C), and back: df (B, T, C) -> dx (B, T, C)."""
    h = np.tanh(x @ W1)
    return h @ W2, lambda df: (df @ W2.T * (1 - h * h)) @ W1.T


def layer_norm(x, gamma, beta):
    """x (B, T, C), gamma and beta (C,) -> y (B, T, C), and back: dy (B, T, C) -> dx (B, T, C)."""
    y, cache = functional.layer_norm(x, gamma, beta)
    return y, lambda dy: functional.layer_norm_backward(dy, cache)[0]


def post_norm(x, m, W1, W2, gamma, beta):
    """The paper's: x and the dropout mask m (B, T, C), m_i being 0 or 1 / (1 - P) -> y (B, T, C), and a cache."""
    f, back_sublayer = sublayer(x, W1, W2)
    y, back_norm = layer_norm(x + m * f, gamma, beta)
    return y, (m, back_sublayer, back_norm)


def pre_norm(x, m, W1, W2, gamma, beta):
    """The one of most code since: x and the dropout mask m (B, T, C) -> y (B, T, C), and a cache."""
    n, back_norm = layer_norm(x, gamma, beta)
    f, back_sublayer = sublayer(n, W1, W2)
    return x + m * f, (m, back_sublayer, back_norm)


def post_norm_backward(dy, cache):
    """dy (B, T, C), which is dLoss/dy -> dx (B, T, C)."""
    m, back_sublayer, back_norm = cache
    raise NotImplementedError("read post_norm from its last line upwards: what is back_norm(dy) the gradient of?")


def pre_norm_backward(dy, cache):
    """dy (B, T, C), which is dLoss/dy -> dx (B, T, C)."""
    m, back_sublayer, back_norm = cache
    raise NotImplementedError("read pre_norm from its last line upwards: y is a sum, so what does each of its two get?")

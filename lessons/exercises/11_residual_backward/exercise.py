"""Exercise 11: the backward pass of Add & Norm, twice.

Difficulty 2 of 5, 20 minutes. See lesson 11, "One sum, two paths back" and "The norm that moved".

The forward is given: one sub-layer with dropout, residual connection and LayerNorm, as post-norm and as pre-norm. You
need no formula of any piece, because each piece returns its result and a function `back`. `back` goes back through the
piece: it takes the gradient of what came out, and returns the gradient of what went in. You only have to join the
pieces.

    minitransformer check 11_residual_backward
"""

import numpy as np

from minitransformer import functional


def sublayer(x, W_1, W_2):
    """A small network f. x (B, T, C), W_1 (C, F), W_2 (F, C) -> f(x) (B, T, C), and back: dy -> dx, both (B, T, C)."""
    hidden = np.tanh(x @ W_1)
    return hidden @ W_2, lambda dy: (dy @ W_2.T * (1 - hidden**2)) @ W_1.T


def layer_norm(x, gamma, beta):
    """x (B, T, C), gamma and beta (C,) -> y (B, T, C), and back: dy -> dx, both (B, T, C)."""
    y, cache = functional.layer_norm(x, gamma, beta)
    return y, lambda dy: functional.layer_norm_backward(dy, cache)[0]


def post_norm(x, mask, W_1, W_2, gamma, beta):
    """As in the paper. x and the dropout mask (B, T, C), which is 0 or 1 / (1 - rate) -> y (B, T, C), and a cache."""
    f_x, back_sublayer = sublayer(x, W_1, W_2)
    y, back_norm = layer_norm(x + mask * f_x, gamma, beta)
    return y, (mask, back_sublayer, back_norm)


def pre_norm(x, mask, W_1, W_2, gamma, beta):
    """As in most code since. x and the dropout mask (B, T, C) -> y (B, T, C), and a cache."""
    normed, back_norm = layer_norm(x, gamma, beta)
    f_x, back_sublayer = sublayer(normed, W_1, W_2)
    return x + mask * f_x, (mask, back_sublayer, back_norm)


def post_norm_backward(dy, cache):
    """dy (B, T, C), which is dLoss/dy -> dx (B, T, C)."""
    mask, back_sublayer, back_norm = cache
    raise NotImplementedError(
        "read post_norm from its last line upwards: which array is back_norm(dy) the gradient of?"
    )


def pre_norm_backward(dy, cache):
    """dy (B, T, C), which is dLoss/dy -> dx (B, T, C)."""
    mask, back_sublayer, back_norm = cache
    raise NotImplementedError(
        "read pre_norm from its last line upwards: y is a sum. What does each of its two terms get?"
    )

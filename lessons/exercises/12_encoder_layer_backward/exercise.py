"""Exercise 12: the backward pass of an encoder layer.

Difficulty 3 of 5, 25 minutes. See lesson 12, "The machine", and lesson 11, "One sum, two paths back".

The forward is given: self-attention and a feed-forward network, each in its Add & Norm (post-norm, as in the paper; one
head, no dropout). Each piece returns its result and a function `back`, which goes back through the piece: it takes the
gradient of what came out, and returns the gradients of what went in. So you need no formula. You only have to join the
pieces.

    minitransformer check 12_encoder_layer_backward
"""

import numpy as np

from minitransformer import functional


def attention(query, key, value, allowed, weights):
    """One head. query (B, T, C), key and value (B, S, C), allowed for (B, T, S), True = may look.

    weights: W_q, W_k, W_v, all (C, D), and W_o (D, C)
    -> y (B, T, C), and back: dy (B, T, C) -> dquery (B, T, C), dkey (B, S, C), dvalue (B, S, C).
    """
    W_q, W_k, W_v, W_o = weights
    o, cache = functional.scaled_dot_product_attention(query @ W_q, key @ W_k, value @ W_v, allowed)

    def back(dy):
        dq, dk, dv, _ = functional.scaled_dot_product_attention_backward(dy @ W_o.T, cache)
        return dq @ W_q.T, dk @ W_k.T, dv @ W_v.T

    return o @ W_o, back


def feed_forward(x, weights):
    """x (B, T, C), weights W_1 (C, F) and W_2 (F, C) -> y (B, T, C), and back: dy (B, T, C) -> dx (B, T, C)."""
    W_1, W_2 = weights
    a = x @ W_1
    on = a.real > 0
    return np.where(on, a, 0) @ W_2, lambda dy: np.where(on, dy @ W_2.T, 0) @ W_1.T


def layer_norm(x, weights):
    """x (B, T, C), weights gamma and beta, both (C,) -> y (B, T, C), and back: dy (B, T, C) -> dx (B, T, C)."""
    y, cache = functional.layer_norm(x, *weights)
    return y, lambda dy: functional.layer_norm_backward(dy, cache)[0]


def encoder_layer(x, allowed, weights):
    """x (B, T, C), allowed for (B, T, T), and the weights of all pieces -> y (B, T, C), and a cache."""
    attended, back_attention = attention(x, x, x, allowed, weights["attention"])
    middle, back_norm_1 = layer_norm(x + attended, weights["norm_1"])
    fed, back_feed_forward = feed_forward(middle, weights["feed_forward"])
    y, back_norm_2 = layer_norm(middle + fed, weights["norm_2"])
    return y, (back_attention, back_norm_1, back_feed_forward, back_norm_2)


def encoder_layer_backward(dy, cache):
    """dy (B, T, C), which is dLoss/dy -> dx (B, T, C), and dmiddle (B, T, C), the gradient of `middle`.

    (A model needs dx alone. The checker uses dmiddle to say in which half a mistake is.)
    """
    back_attention, back_norm_1, back_feed_forward, back_norm_2 = cache
    raise NotImplementedError(
        "read encoder_layer from its last line upwards, and count how often it uses each name. Start with dmiddle"
    )

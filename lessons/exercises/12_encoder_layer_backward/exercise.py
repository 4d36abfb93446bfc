"""Exercise 12: the backward pass of an encoder layer.

Difficulty 3 of 5, 25 minutes. See lesson 12, "The pieces" and "The machine".

Self-attention and a feed-forward network, each in its Add & Norm (post-norm, as in the paper; one head, no dropout).
Each piece's forward returns its result AND a function `back`, which goes back through it, from the gradient of what
came out to the gradients of what went in. So no formula is needed; what is yours is to join them.

    minitransformer check 12_encoder_layer_backward
"""

import numpy as np

from minitransformer import functional


def attention(query, key, value, allowed, weights):
    """One head. query (B, T, C), key and value (B, S, C), allowed for (B, T, S), weights (C, D) three times, (D, C).

    -> o (B, T, C), and back: do (B, T, C) -> dquery (B, T, C), dkey (B, S, C), dvalue (B, S, C).
    """
    Wq, Wk, Wv, Wo = weights
    o, cache = functional.scaled_dot_product_attention(query @ Wq, key @ Wk, value @ Wv, allowed)

    def back(do):
        dq, dk, dv, _ = functional.scaled_dot_product_attention_backward(do @ Wo.T, cache)
        return dq @ Wq.T, dk @ Wk.T, dv @ Wv.T

    return o @ Wo, back


def feed_forward(a, weights):
    """a (B, T, C), weights (C, F) and (F, C) -> f (B, T, C), and back: df (B, T, C) -> da (B, T, C)."""
    W1, W2 = weights
    u = a @ W1
    on = u.real > 0
    return np.where(on, u, 0) @ W2, lambda df: np.where(on, df @ W2.T, 0) @ W1.T


def layer_norm(s, weights):
    """s (B, T, C), weights gamma and beta, both (C,) -> y (B, T, C), and back: dy (B, T, C) -> ds (B, T, C)."""
    y, cache = functional.layer_norm(s, *weights)
    return y, lambda dy: functional.layer_norm_backward(dy, cache)[0]


def encoder_layer(x, allowed, p):
    """x (B, T, C), allowed for (B, T, T), True = may attend, p the pieces' weights -> y (B, T, C), and a cache."""
    s, back_attention = attention(x, x, x, allowed, p["attention"])
    a, back_norm_1 = layer_norm(x + s, p["norm_1"])
    f, back_feed_forward = feed_forward(a, p["feed_forward"])
    y, back_norm_2 = layer_norm(a + f, p["norm_2"])
    return y, (back_attention, back_norm_1, back_feed_forward, back_norm_2)


def encoder_layer_backward(dy, cache):
    """dy (B, T, C), which is dLoss/dy -> dx (B, T, C), and da (B, T, C), the gradient of a, half-way.

    (A model needs dx alone; da is for the checker, so that it can say in which half a mistake is.)
    """
    back_attention, back_norm_1, back_feed_forward, back_norm_2 = cache
    raise NotImplementedError(
        "read encoder_layer from its last line upwards, and ask of every name how often it was used. Begin with da"
    )

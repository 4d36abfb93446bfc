"""Exercise 12: the backward pass of a decoder layer, and of a stack of them.

Difficulty 4 of 5, 40 minutes. See lesson 12, "The machine".

Masked self-attention, cross-attention to the memory (what the encoder made of the source), a feed-forward network,
each in its Add & Norm (post-norm, one head, no dropout). Each piece's forward returns its result AND a function
`back`, which goes back through it. Join them to the backward of one layer, then join layers to a stack. The two
functions are checked apart: the second is given layers' backwards that are right, whatever the first one does.

    minitransformer check 12_decoder_layer_backward
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


def feed_forward(c, weights):
    """c (B, T, C), weights (C, F) and (F, C) -> f (B, T, C), and back: df (B, T, C) -> dc (B, T, C)."""
    W1, W2 = weights
    u = c @ W1
    on = u.real > 0
    return np.where(on, u, 0) @ W2, lambda df: np.where(on, df @ W2.T, 0) @ W1.T


def layer_norm(s, weights):
    """s (B, T, C), weights gamma and beta, both (C,) -> y (B, T, C), and back: dy (B, T, C) -> ds (B, T, C)."""
    y, cache = functional.layer_norm(s, *weights)
    return y, lambda dy: functional.layer_norm_backward(dy, cache)[0]


def decoder_layer(x, memory, allowed, memory_allowed, p):
    """x (B, T, C), memory (B, S, C), who may attend for (B, T, T) and (B, T, S), p the pieces' weights.

    -> y (B, T, C), and a cache.
    """
    s, back_self = attention(x, x, x, allowed, p["self_attention"])
    a, back_norm_1 = layer_norm(x + s, p["norm_1"])
    r, back_cross = attention(a, memory, memory, memory_allowed, p["cross_attention"])
    c, back_norm_2 = layer_norm(a + r, p["norm_2"])
    f, back_feed_forward = feed_forward(c, p["feed_forward"])
    y, back_norm_3 = layer_norm(c + f, p["norm_3"])
    return y, (back_self, back_norm_1, back_cross, back_norm_2, back_feed_forward, back_norm_3)


def decoder(x, memory, allowed, memory_allowed, layers):
    """As decoder_layer, through all layers, of which each reads the same memory -> y (B, T, C), and their caches."""
    caches = []
    for p in layers:
        x, cache = decoder_layer(x, memory, allowed, memory_allowed, p)
        caches.append(cache)
    return x, caches


def decoder_layer_backward(dy, cache):
    """dy (B, T, C), which is dLoss/dy -> dx (B, T, C), dmemory (B, S, C)."""
    back_self, back_norm_1, back_cross, back_norm_2, back_feed_forward, back_norm_3 = cache
    raise NotImplementedError(
        "read decoder_layer from its last line upwards, and ask of x, a, c and the memory how often each was used"
    )


def decoder_backward(dy, backs):
    """dy (B, T, C), the gradient of what the last layer returned -> dx (B, T, C) of the first one's x, dmemory.

    backs: a function for each layer, the first layer's first: back(dy of that layer) -> its dx, its part of dmemory.
    (Yours would be [lambda dy, cache=cache: decoder_layer_backward(dy, cache) for cache in caches].)
    """
    raise NotImplementedError("which layer must go first? And what do several layers' parts of dmemory make together?")

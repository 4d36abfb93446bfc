"""Exercise 12: the backward pass of a decoder layer, and of a stack of them.

Difficulty 4 of 5, 40 minutes. See lesson 12, "Eleven lessons in two cells" and "The machine".

The forward is given: masked self-attention, cross-attention to the memory M (what the encoder made of the source), and
a feed-forward network, each in its Add & Norm (post-norm, one head, no dropout). Each piece returns its result and a
function `back`, which goes back through the piece. Join them to the backward pass of one layer, then join layers to a
stack. The two functions are checked separately: the second one gets the right backward passes of its layers, even if
your first function is wrong.

    minitransformer check 12_decoder_layer_backward
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


def decoder_layer(x, M, allowed, memory_allowed, weights):
    """x (B, T, C), M (B, S, C), who may look at whom for (B, T, T) and (B, T, S), and the weights of all pieces.

    -> y (B, T, C), and a cache.
    """
    attended, back_self = attention(x, x, x, allowed, weights["self_attention"])
    first, back_norm_1 = layer_norm(x + attended, weights["norm_1"])
    read, back_cross = attention(first, M, M, memory_allowed, weights["cross_attention"])
    second, back_norm_2 = layer_norm(first + read, weights["norm_2"])
    fed, back_feed_forward = feed_forward(second, weights["feed_forward"])
    y, back_norm_3 = layer_norm(second + fed, weights["norm_3"])
    return y, (back_self, back_norm_1, back_cross, back_norm_2, back_feed_forward, back_norm_3)


def decoder(x, M, allowed, memory_allowed, layers):
    """As decoder_layer, but through all layers, which read the same M -> y (B, T, C), and the caches of the layers."""
    caches = []
    for weights in layers:
        x, cache = decoder_layer(x, M, allowed, memory_allowed, weights)
        caches.append(cache)
    return x, caches


def decoder_layer_backward(dy, cache):
    """dy (B, T, C), which is dLoss/dy -> dx (B, T, C), dM (B, S, C)."""
    back_self, back_norm_1, back_cross, back_norm_2, back_feed_forward, back_norm_3 = cache
    raise NotImplementedError(
        "read decoder_layer from its last line upwards, and count how often it uses x, first, second and M"
    )


def decoder_backward(dy, backs):
    """dy (B, T, C), the gradient of what the last layer returned -> dx (B, T, C), of the x of the first layer, and dM.

    backs: one function for each layer, the first layer's first. back(dy of this layer) -> its dx, its share of dM.
    (Yours would be [lambda dy, cache=cache: decoder_layer_backward(dy, cache) for cache in caches].)
    """
    raise NotImplementedError("which layer must go first? And what do the shares of dM make together?")

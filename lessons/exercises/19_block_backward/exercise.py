"""Exercise 19: one of today's blocks, backward.

Difficulty 4 of 5, 40 minutes. See lesson 19, "Today's block, in code", "Turning back" and "A gate, and shared keys".

The forward is given: RMSNorm before each sub-layer, queries and keys turned by their positions (RoPE), keys and values
that a group of heads shares, and SwiGLU. It comes in two halves, as in the paper: attention makes `middle` from x, and
the feed-forward network makes y from `middle`. Write the way back through both. Norms and attention return a function
`back`, which goes back through them: it takes the gradient of what came out, and returns the gradients of what went in.

    minitransformer check 19_block_backward
"""

import numpy as np

from minitransformer import functional


def turn(x, angles):
    """x (B, H, T, D), angles (T, D/2): turn each pair of neighboring features -> y (B, H, T, D)."""
    cos, sin = np.cos(angles), np.sin(angles)
    first, second = x[..., 0::2], x[..., 1::2]
    return np.stack([first * cos - second * sin, first * sin + second * cos], axis=-1).reshape(x.shape)


def heads(x, D):
    """x (B, T, H D) -> (B, H, T, D)."""
    return np.swapaxes(x.reshape(*x.shape[:2], -1, D), 1, 2)


def side_by_side(x):
    """x (B, H, T, D) -> (B, T, H D)."""
    return np.swapaxes(x, 1, 2).reshape(x.shape[0], x.shape[2], -1)


def silu(a):
    """a sigmoid(a), for each entry."""
    return a / (1 + np.exp(-a))


def silu_slope(a):
    """The derivative of silu, for each entry."""
    share = 1 / (1 + np.exp(-a))
    return share * (1 + a * (1 - share))


def rms_norm(x, gamma):
    """x (B, T, C), gamma (C,) -> y (B, T, C), and back: dy (B, T, C) -> dx (B, T, C)."""
    y, cache = functional.rms_norm(x, gamma)
    return y, lambda dy: functional.rms_norm_backward(dy, cache)[0]


def causal_attention(q, k, v):
    """q, k, v (B, H, T, D) -> o (B, H, T, D), and back: do (B, H, T, D) -> dq, dk, dv, all (B, H, T, D)."""
    o, cache = functional.scaled_dot_product_attention(q, k, v, np.tri(q.shape[2], dtype=bool))
    return o, lambda do: functional.scaled_dot_product_attention_backward(do, cache)[:3]


def attention_half(x, angles, weights):
    """x (B, T, C) -> middle (B, T, C), and a cache. H heads of queries share G heads of keys and values.

    weights: gamma_1 (C,), W_q (C, H D), W_k and W_v (C, G D), W_o (H D, C), and those of feed_forward_half
    """
    D = 2 * angles.shape[-1]
    normed, back_norm = rms_norm(x, weights["gamma_1"])
    q, k, v = (heads(normed @ weights[name], D) for name in ("W_q", "W_k", "W_v"))
    q, k = turn(q, angles), turn(k, angles)
    group = q.shape[1] // k.shape[1]
    copies_of_k, copies_of_v = np.repeat(k, group, axis=1), np.repeat(v, group, axis=1)
    o, back_attention = causal_attention(q, copies_of_k, copies_of_v)
    return x + side_by_side(o) @ weights["W_o"], (back_norm, back_attention, group, angles, weights)


def feed_forward_half(middle, weights):
    """middle (B, T, C) -> y (B, T, C), and a cache.

    weights: gamma_2 (C,), W_gate and W_value (C, F), W_down (F, C)
    """
    normed, back_norm = rms_norm(middle, weights["gamma_2"])
    gate, value = normed @ weights["W_gate"], normed @ weights["W_value"]
    return middle + (silu(gate) * value) @ weights["W_down"], (back_norm, gate, value, weights)


def block(x, angles, weights):
    """x (B, T, C), angles (T, D/2) -> y (B, T, C), and the caches of both halves."""
    middle, cache_of_attention = attention_half(x, angles, weights)
    y, cache_of_feed_forward = feed_forward_half(middle, weights)
    return y, (cache_of_attention, cache_of_feed_forward)


def block_backward(dy, cache):
    """dy (B, T, C), which is dLoss/dy -> dx (B, T, C), and dmiddle (B, T, C), the gradient of `middle`.

    (A model needs dx alone. The checker uses dmiddle to say in which half a mistake is.)
    """
    cache_of_attention, cache_of_feed_forward = cache
    back_norm, gate, value, weights = cache_of_feed_forward
    raise NotImplementedError(
        "read feed_forward_half from its last line upwards: which two ways does `middle` go? Then do the same with x"
    )

"""Gated activations (Shazeer 2020, "GLU Variants Improve Transformer"): one half of the features switches the other."""

from typing import NamedTuple

from minitransformer.backend import xp
from minitransformer.functional.activations import (
    gelu,
    gelu_backward,
    gelu_tanh,
    gelu_tanh_backward,
    silu,
    silu_backward,
)


class GatedCache(NamedTuple):
    """What the gated activations remember."""

    up: xp.ndarray  # (..., F)
    gate: xp.ndarray  # (..., F), after its activation
    activation: object  # what the activation itself remembers


def geglu(x):
    """GELU of the first half, times the second: x (..., 2F) = (gate | up) -> y (..., F).

    Without a gate, what a feature says and whether it speaks are one number. Here they are two, and each has a path:

    Forward    y_f = a(g_f) u_f        g = x[..., :F] the gate, u = x[..., F:] what it lets up, a = GELU
    Jacobian   dy_f/dg_h = 1[f = h] a'(g_f) u_f        dy_f/du_h = 1[f = h] a(g_f)
    Chain      dg = a'(g) (dy u), by the activation's own backward        du = dy a(g)
    Remember   u, a(g), and what a remembers
    Check      y doubles with u; sum over f of u_f du_f = sum over f of y_f dy_f
    """
    return _gated(x, gelu)


def geglu_backward(dy, cache):
    """dx (..., 2F) from dy (..., F); the derivation stands in `geglu`."""
    return _gated_backward(dy, cache, gelu_backward)


def geglu_tanh(x):
    """As `geglu`, with the tanh form of GELU: "gated-gelu" in T5 version 1.1."""
    return _gated(x, gelu_tanh)


def geglu_tanh_backward(dy, cache):
    """dx (..., 2F) from dy (..., F); the derivation stands in `geglu`."""
    return _gated_backward(dy, cache, gelu_tanh_backward)


def swiglu(x):
    """As `geglu`, with a = SiLU; LLaMA's activation."""
    return _gated(x, silu)


def swiglu_backward(dy, cache):
    """dx (..., 2F) from dy (..., F); the derivation stands in `geglu`."""
    return _gated_backward(dy, cache, silu_backward)


def _gated(x, activation):
    gate, up = xp.split(x, 2, axis=-1)
    a, cache = activation(gate)
    return a * up, GatedCache(up, a, cache)


def _gated_backward(dy, cache, activation_backward):
    up, a, cache_activation = cache
    dgate = activation_backward(dy * up, cache_activation)
    return xp.concatenate([dgate, dy * a], axis=-1)

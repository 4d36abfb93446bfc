"""Gated activations (Shazeer 2020, "GLU Variants Improve Transformer"): one half of the features gates the other."""

from collections.abc import Callable
from typing import Any, NamedTuple

from minitransformer.backend import xp
from minitransformer.functional.since_2017.activations import (
    ShareCache,
    gelu,
    gelu_backward,
    gelu_tanh,
    gelu_tanh_backward,
    silu,
    silu_backward,
)


class SigmoidCache(NamedTuple):
    """What the sigmoid of `glu` remembers."""

    share: xp.ndarray  # sigma(x)
    rest: xp.ndarray  # sigma(-x) = 1 - sigma(x); where sigma is nearly 1, the subtraction would lose all digits


class GatedCache(NamedTuple):
    """What the gated activations remember."""

    up: xp.ndarray  # (..., F)
    gate: xp.ndarray  # (..., F), after its activation
    activation: ShareCache | SigmoidCache  # what the activation itself remembers


def geglu(x: xp.ndarray) -> tuple[xp.ndarray, GatedCache]:
    """GELU of the first half times the second half: x (..., 2F) = (gate | up) -> y (..., F).

    Without a gate, one number decides both the value of a feature and whether it passes. Here these are two numbers:

    Forward    y_f = a(g_f) u_f        g = x[..., :F] the gate, u = x[..., F:] what it lets through, a = GELU
    Jacobian   dy_f/dg_h = 1[f = h] a'(g_f) u_f        dy_f/du_h = 1[f = h] a(g_f)
    Chain      dg = a'(g) (dy u), by the activation's own backward        du = dy a(g)
    Remember   u, a(g), and what a remembers
    Check      y doubles with u; sum over f of u_f du_f = sum over f of y_f dy_f
    """
    return _gated(x, gelu)


def geglu_backward(dy: xp.ndarray, cache: GatedCache) -> xp.ndarray:
    """dx (..., 2F) from dy (..., F); see `geglu` for the derivation."""
    return _gated_backward(dy, cache, gelu_backward)


def geglu_tanh(x: xp.ndarray) -> tuple[xp.ndarray, GatedCache]:
    """As `geglu`, with the tanh form of GELU ("gated-gelu" in T5 version 1.1)."""
    return _gated(x, gelu_tanh)


def geglu_tanh_backward(dy: xp.ndarray, cache: GatedCache) -> xp.ndarray:
    """dx (..., 2F) from dy (..., F); see `geglu` for the derivation."""
    return _gated_backward(dy, cache, gelu_tanh_backward)


def swiglu(x: xp.ndarray) -> tuple[xp.ndarray, GatedCache]:
    """As `geglu`, with a = SiLU: the activation of LLaMA."""
    return _gated(x, silu)


def swiglu_backward(dy: xp.ndarray, cache: GatedCache) -> xp.ndarray:
    """dx (..., 2F) from dy (..., F); see `geglu` for the derivation."""
    return _gated_backward(dy, cache, silu_backward)


def glu(x: xp.ndarray) -> tuple[xp.ndarray, GatedCache]:
    """As `geglu`, with a = sigma, which lies between 0 and 1: the gated linear unit (Dauphin et al. 2017).

    The values pass without an activation of their own, so a gradient reaches them scaled by sigma alone.
    """
    return _gated(x, sigmoid)


def glu_backward(dy: xp.ndarray, cache: GatedCache) -> xp.ndarray:
    """dx (..., 2F) from dy (..., F); see `geglu` for the derivation, with a'(x) = sigma(x) sigma(-x)."""
    return _gated_backward(dy, cache, sigmoid_backward)


def sigmoid(x: xp.ndarray) -> tuple[xp.ndarray, SigmoidCache]:
    """sigma(x), written as in `silu`; sigma(-x) has the same denominator."""
    share = xp.minimum(x, 0)
    rest = share - x
    xp.exp(share, out=share)
    xp.exp(rest, out=rest)
    total = share + rest
    share /= total
    rest /= total
    return share, SigmoidCache(share, rest)


def sigmoid_backward(dy: xp.ndarray, cache: SigmoidCache) -> xp.ndarray:
    """dx from dy: sigma'(x) = sigma(x) sigma(-x)."""
    slope = cache.share * cache.rest
    slope *= dy
    return slope


def _gated(x: xp.ndarray, activation: Callable[[Any], tuple[Any, Any]]) -> tuple[xp.ndarray, GatedCache]:
    gate, up = xp.split(x, 2, axis=-1)
    a, cache = activation(gate)
    return a * up, GatedCache(up, a, cache)


def _gated_backward(dy: xp.ndarray, cache: GatedCache, activation_backward: Callable[[Any, Any], Any]) -> xp.ndarray:
    up, a, cache_activation = cache
    dgate = activation_backward(dy, cache_activation)
    dgate *= up  # after the slope: where that is 0, the product cannot overflow
    return xp.concatenate([dgate, dy * a], axis=-1)

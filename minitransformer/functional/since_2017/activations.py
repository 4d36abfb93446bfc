"""The activations that came after ReLU, and tanh: functions of each entry alone, or of one half that gates the other.

ReLU switches each entry on or off by its sign. The first three multiply the entry by a share of it, y = x G(x), where G
rises smoothly from 0 to 1, so dy/dx = G(x) + x G'(x). They differ in G, and therefore in G'. The gated ones (Shazeer
2020, "GLU Variants Improve Transformer") multiply a function of one half of the features with the other half.

`ACTIVATIONS` has a row for each that a model can choose: its configuration, the feed-forward layer, the gradient checks
and the tests read it. CONTRIBUTING.md shows how to add one.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from minitransformer.backend import xp
from minitransformer.functional.activations import relu, relu_backward
from minitransformer.functional.since_2017.erf import normal_cdf, normal_pdf


class ShareCache(NamedTuple):
    """What the smooth activations remember."""

    x: xp.ndarray
    share: xp.ndarray  # G(x), of the shape of x


class SigmoidCache(NamedTuple):
    """What the sigmoid of `glu` remembers."""

    share: xp.ndarray  # sigma(x)
    rest: xp.ndarray  # sigma(-x) = 1 - sigma(x); where sigma is nearly 1, the subtraction would lose all digits


class GatedCache(NamedTuple):
    """What the gated activations remember."""

    up: xp.ndarray  # (..., F)
    gate: xp.ndarray  # (..., F), after its activation
    activation: ShareCache | SigmoidCache  # what the activation itself remembers


def gelu(x: xp.ndarray) -> tuple[xp.ndarray, ShareCache]:
    """Gaussian error linear unit (Hendrycks and Gimpel 2016), exact, entry by entry, any shape; BERT's activation.

    Each entry is multiplied by the share of a standard normal distribution that lies below it:

    Forward    y_i = x_i Phi(x_i)        Phi(x) = (1 + erf(x / sqrt(2))) / 2
    Jacobian   dy_i/dx_j = 1[i = j] (Phi(x_i) + x_i phi(x_i))        phi(x) = Phi'(x) = exp(-x^2 / 2) / sqrt(2 pi)
    Chain      dx_i = dy_i (Phi(x_i) + x_i phi(x_i))
    Remember   x and Phi(x), whose memory costs less than computing it twice
    Check      gelu(x) - gelu(-x) = x; the slopes at x and -x sum to 1
    """
    share = normal_cdf(x)
    return x * share, ShareCache(x, share)


def gelu_backward(dy: xp.ndarray, cache: ShareCache) -> xp.ndarray:
    """dx from dy, all of one shape; see `gelu` for the derivation."""
    x, share = cache
    dx = normal_pdf(x)
    dx *= x
    dx += share
    dx *= dy
    return dx


CUBIC = 0.044715  # with it, the tanh form differs from the exact one by at most 0.0005
LINEAR = math.sqrt(2.0 / math.pi)
FAR = 10.0  # from here on, the tanh form is x or 0 to the last bit


@np.errstate(over="ignore")  # far out the cube is infinite, and its tanh is 1, as it should be
def gelu_tanh(x: xp.ndarray) -> tuple[xp.ndarray, ShareCache]:
    """GELU in its tanh form (Hendrycks and Gimpel 2016, section 2), entry by entry; the activation of GPT-2.

    Forward    y_i = x_i G(x_i)        G(x) = (1 + tanh(s(x))) / 2        s(x) = sqrt(2 / pi) (x + 0.044715 x^3)
    Jacobian   dy_i/dx_j = 1[i = j] (G + x_i G')        s'(x) = sqrt(2 / pi) (1 + 3 * 0.044715 x^2)
               G' = (1 - tanh(s)^2) s' / 2 = 2 G (1 - G) s'        as 1 - tanh^2 = (1 - tanh)(1 + tanh)
    Chain      dx_i = dy_i G (1 + 2 x_i (1 - G) s')
    Remember   x and G(x)
    Check      gelu_tanh(x) - gelu_tanh(-x) = x; the slopes at x and -x sum to 1
    """
    share = x * x
    share *= LINEAR * CUBIC
    share += LINEAR
    share *= x  # s
    xp.tanh(share, out=share)
    share += 1.0
    share *= 0.5
    return x * share, ShareCache(x, share)


@np.errstate(over="ignore")  # the square of a large number may be infinite: it is limited next
def gelu_tanh_backward(dy: xp.ndarray, cache: ShareCache) -> xp.ndarray:
    """dx from dy, all of one shape; see `gelu_tanh` for the derivation."""
    x, share = cache
    dx = x * x
    limit = xp.full(x.shape[-1:], FAR * FAR, x.dtype)  # an array, as in `erf`
    xp.minimum(dx, limit, out=dx)  # far out s' is multiplied by 0, which infinity would turn into NaN
    dx *= 2.0 * LINEAR * CUBIC * 3.0
    dx += 2.0 * LINEAR
    dx *= x  # 2 x s'
    dx *= 1.0 - share
    dx += 1.0
    dx *= share
    dx *= dy
    return dx


def silu(x: xp.ndarray) -> tuple[xp.ndarray, ShareCache]:
    """Sigmoid linear unit, also called Swish with beta = 1 (Hendrycks and Gimpel 2016; Ramachandran et al. 2017).

    Forward    y_i = x_i sigma(x_i)        sigma(x) = 1 / (1 + exp(-x)) = exp(n) / (exp(n) + exp(-p)), with n and p the
                                           negative and the positive part of x = n + p, so that no exp overflows
    Jacobian   dy_i/dx_j = 1[i = j] (sigma + x_i sigma')        sigma' = sigma (1 - sigma)
    Chain      dx_i = dy_i sigma (1 + x_i (1 - sigma))
    Remember   x and sigma(x)
    Check      silu(x) - silu(-x) = x; the slopes at x and -x sum to 1
    """
    share = xp.minimum(x, 0)
    rest = share - x  # -p
    xp.exp(share, out=share)
    xp.exp(rest, out=rest)
    rest += share
    share /= rest
    return x * share, ShareCache(x, share)


def silu_backward(dy: xp.ndarray, cache: ShareCache) -> xp.ndarray:
    """dx from dy, all of one shape; see `silu` for the derivation."""
    x, share = cache
    dx = 1.0 - share
    dx *= x
    dx += 1.0
    dx *= share
    dx *= dy
    return dx


def tanh(x: xp.ndarray) -> tuple[xp.ndarray, xp.ndarray]:
    """The hyperbolic tangent, entry by entry, any shape: the last step of the pooling in BERT's classifier.

    Forward    y_i = tanh(x_i)
    Jacobian   dy_i/dx_j = 1[i = j] (1 - y_i^2)
    Chain      dx_i = dy_i (1 - y_i^2)
    Remember   only y
    Check      |dx| is nowhere larger than |dy|
    """
    y = xp.tanh(x)
    return y, y


def tanh_backward(dy: xp.ndarray, y: xp.ndarray) -> xp.ndarray:
    """dx from dy and the remembered output y, all of one shape; see `tanh` for the derivation."""
    return dy * (1.0 - y * y)


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


Pair = tuple[Callable[..., Any], Callable[..., Any]]
ACTIVATIONS: dict[str, Pair] = {  # by the names that a configuration gives them
    "relu": (relu, relu_backward),  # the paper
    "gelu": (gelu, gelu_backward),  # BERT
    "gelu_tanh": (gelu_tanh, gelu_tanh_backward),  # GPT-2
    "silu": (silu, silu_backward),
    "geglu": (geglu, geglu_backward),
    "geglu_tanh": (geglu_tanh, geglu_tanh_backward),  # T5 version 1.1
    "swiglu": (swiglu, swiglu_backward),  # LLaMA
}
GATED = ("geglu", "geglu_tanh", "swiglu")  # from 2F features to F
CONV_ACTIVATIONS: dict[str, Pair] = {
    "relu": (relu, relu_backward),
    "glu": (glu, glu_backward),  # ConvS2S (Gehring et al. 2017)
}

"""Activations: functions of each entry alone, between the two matrices of the feed-forward network.

ReLU switches each entry on or off by its sign. The three after it are the entry times its share, y = x G(x), where G
rises smoothly from 0 to 1; so dy/dx = G(x) + x G'(x), and they differ in what G is, and how G' comes out of it.
"""

import math
from typing import NamedTuple

from minitransformer.backend import fused_on_gpu, xp
from minitransformer.functional.erf import normal_cdf, normal_pdf


def relu(x):
    """Rectified linear unit (paper section 3.3, the max(0, .) of equation 2), entry by entry, any shape.

    Forward    y_i = max(0, x_i)
    Jacobian   dy_i/dx_j = 1[i = j] 1[x_i > 0]        at the kink x_i = 0 we take 0, as everybody does
    Chain      dx_i = dy_i 1[x_i > 0]
    Remember   only y: it is positive just where x is, and the next layer keeps the same array as its input
    Check      dx is 0 wherever y is 0, and dy elsewhere
    """
    y = xp.maximum(x, 0)
    return y, y


@fused_on_gpu
def relu_backward(dy, y):
    """dx from dy and the remembered output y, all of one shape; the derivation stands in `relu`."""
    return dy * (y > 0)


class ShareCache(NamedTuple):
    """What the smooth activations remember."""

    x: xp.ndarray
    share: xp.ndarray  # G(x), of the shape of x


def gelu(x):
    """Gaussian error linear unit (Hendrycks and Gimpel 2016), exact, entry by entry, any shape; BERT's activation.

    Each entry, times the share of a standard normal distribution that lies below it:

    Forward    y_i = x_i Phi(x_i)        Phi(x) = (1 + erf(x / sqrt(2))) / 2
    Jacobian   dy_i/dx_j = 1[i = j] (Phi(x_i) + x_i phi(x_i))        phi(x) = Phi'(x) = exp(-x^2 / 2) / sqrt(2 pi)
    Chain      dx_i = dy_i (Phi(x_i) + x_i phi(x_i))
    Remember   x and Phi(x), which costs more time than memory
    Check      gelu(x) - gelu(-x) = x; the slopes at x and -x sum to 1
    """
    share = normal_cdf(x)
    return x * share, ShareCache(x, share)


def gelu_backward(dy, cache):
    """dx from dy, all of one shape; the derivation stands in `gelu`."""
    x, share = cache
    dx = normal_pdf(x)
    dx *= x
    dx += share
    dx *= dy
    return dx


CUBIC = 0.044715  # with it, the tanh form is nowhere more than 0.0005 away from the exact one


def gelu_tanh(x):
    """GELU in its tanh form (Hendrycks and Gimpel 2016, section 2), entry by entry; the activation of GPT-2.

    Forward    y_i = x_i G(x_i)        G(x) = (1 + tanh(s(x))) / 2        s(x) = sqrt(2 / pi) (x + 0.044715 x^3)
    Jacobian   dy_i/dx_j = 1[i = j] (G + x_i G')        s'(x) = sqrt(2 / pi) (1 + 3 * 0.044715 x^2)
               G' = (1 - tanh(s)^2) s' / 2 = 2 G (1 - G) s'        as 1 - tanh^2 = (1 - tanh)(1 + tanh)
    Chain      dx_i = dy_i G (1 + 2 x_i (1 - G) s')
    Remember   x and G(x)
    Check      gelu_tanh(x) - gelu_tanh(-x) = x; the slopes at x and -x sum to 1
    """
    share = x * x
    share *= CUBIC
    share += 1.0
    share *= x
    share *= math.sqrt(2.0 / math.pi)
    xp.tanh(share, out=share)
    share += 1.0
    share *= 0.5
    return x * share, ShareCache(x, share)


def gelu_tanh_backward(dy, cache):
    """dx from dy, all of one shape; the derivation stands in `gelu_tanh`."""
    x, share = cache
    dx = x * x
    dx *= 3.0 * CUBIC
    dx += 1.0
    dx *= x
    dx *= 2.0 * math.sqrt(2.0 / math.pi)  # 2 x s'
    dx *= 1.0 - share
    dx += 1.0
    dx *= share
    dx *= dy
    return dx


def silu(x):
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


def silu_backward(dy, cache):
    """dx from dy, all of one shape; the derivation stands in `silu`."""
    x, share = cache
    dx = 1.0 - share
    dx *= x
    dx += 1.0
    dx *= share
    dx *= dy
    return dx


def tanh(x):
    """The hyperbolic tangent, entry by entry, any shape: what BERT's classifier ends its pooling with.

    Forward    y_i = tanh(x_i)
    Jacobian   dy_i/dx_j = 1[i = j] (1 - y_i^2)
    Chain      dx_i = dy_i (1 - y_i^2)
    Remember   only y
    Check      dx is nowhere larger than dy
    """
    y = xp.tanh(x)
    return y, y


def tanh_backward(dy, y):
    """dx from dy and the remembered output y, all of one shape; the derivation stands in `tanh`."""
    return dy * (1.0 - y * y)

"""Dropout: forget a random part of the activations while training."""

from typing import NamedTuple

from minitransformer.backend import fused_on_gpu, xp
from minitransformer.checks import check_generator, check_rate
from minitransformer.generators import random_uint16


class DropoutCache(NamedTuple):
    """What `dropout` remembers."""

    keep: xp.ndarray  # boolean, the shape of x
    scale: float  # one over the share that is kept


@fused_on_gpu
def dropout(x, rate, rng=None):
    """Inverted dropout (paper section 5.4): set each entry to 0 with probability `rate`, scale up the others.

    x any shape; rng draws the mask, and rng=None (evaluation) or rate=0 makes it the identity. The rate is rounded to
    a multiple of 2^-16 below 1, so that two random bytes decide an entry, and the scale is that of the rounded rate.

    Forward    y_i = x_i m_i        m_i = 0 with probability P, else 1 / (1 - P), so that the mean of y_i is x_i
    Jacobian   dy_i/dx_j = 1[i = j] m_i
    Chain      dx_i = dy_i m_i
    Remember   which entries were kept (None for the identity); backward must never draw a second mask
    Check      dx is 0 just where y is 0; without rng, y is x
    """
    check_rate("rate", rate)
    check_generator(rng)
    dropped = min(round(rate * 65536), 65535)
    if rng is None or dropped == 0:
        return x, None
    cache = DropoutCache(random_uint16(rng, x.shape) >= dropped, 65536 / (65536 - dropped))
    return dropout_backward(x, cache), cache  # forward and backward are the same product with m


@fused_on_gpu
def dropout_backward(dy, cache):
    """dx from dy and the remembered mask; the derivation stands in `dropout`."""
    if cache is None:
        return dy
    dx = dy * cache.keep
    dx *= cache.scale
    return dx

"""Dropout: set a random part of the activations to 0 while training."""

import math
from typing import NamedTuple

import numpy as np

from minitransformer.backend import fused, xp
from minitransformer.checks import check_generator, check_rate


class DropoutCache(NamedTuple):
    """What `dropout` remembers."""

    keep: xp.ndarray  # boolean, the shape of x
    scale: float  # one over the share that is kept


def dropout(
    x: xp.ndarray, rate: float, rng: np.random.Generator | None = None
) -> tuple[xp.ndarray, DropoutCache | None]:
    """Inverted dropout (paper section 5.4): set each entry to 0 with probability `rate`, scale up the others.

    x any shape; rng draws the mask, and rng=None (evaluation) or rate=0 makes it the identity. The rate is rounded to
    P, a multiple of 2^-16 below 1, so that two random bytes decide each entry, and the scale is that of P. Raises
    TypeError or ValueError for a rate outside [0, 1), TypeError for an rng that is not a generator.

    Forward    y_i = x_i m_i        m_i = 0 with probability P, else 1 / (1 - P), so that the mean of y_i is x_i
    Jacobian   dy_i/dx_j = 1[i = j] m_i
    Chain      dx_i = dy_i m_i
    Remember   which entries were kept (None for the identity); backward must never draw a second mask
    Check      dx is 0 exactly where y is 0; without rng, y is x
    """
    check_rate("rate", rate)
    check_generator(rng)
    dropped = min(round(rate * 65536), 65535)
    if rng is None or dropped == 0:
        return x, None
    scale = 65536 / (65536 - dropped)
    y, keep = _dropout(x, random_uint16(rng, x.shape), dropped, scale)
    return y, DropoutCache(keep, scale)


def random_uint16(rng: np.random.Generator, shape: tuple[int, ...]) -> xp.ndarray:
    """Independent integers from 0 to 65535, all equally likely: four from each 64-bit random number of `rng`."""
    size = math.prod(shape)
    words = rng.integers(0, 2**64 - 1, size=-(-size // 4), dtype=xp.uint64, endpoint=True)
    return words.view(xp.uint16)[:size].reshape(shape)


@fused
def _dropout(x, bits, dropped, scale):
    keep = bits >= dropped
    return _dropout_backward(x, keep, scale), keep  # forward and backward are the same product with m


def dropout_backward(dy: xp.ndarray, cache: DropoutCache | None) -> xp.ndarray:
    """dx from dy and the remembered mask, of the shape of x; see `dropout` for the derivation."""
    return dy if cache is None else _dropout_backward(dy, *cache)


@fused
def _dropout_backward(dy, keep, scale):
    dx = dy * keep
    dx *= scale
    return dx

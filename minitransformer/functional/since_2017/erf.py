"""The error function, which NumPy lacks, and with it the normal distribution, which exact GELU needs."""

import math
from typing import NamedTuple

import numpy as np

from minitransformer.backend import xp
from minitransformer.functional.reductions import blocks


class Fit(NamedTuple):
    """A rational function of u = z^2 that is close to atanh(erf(z)) / z for u from 0 to `limit`."""

    limit: float  # from here on, erf is 1 to the last bit
    above: tuple[float, ...]  # coefficients of the numerator, the constant one first
    below: tuple[float, ...]  # of the denominator; the last is 1


SINGLE = Fit(
    16.0,
    (3472.758947, 861.1477963, 131.2510839, 6.703974723),
    (3077.652474, 482.8604913, 72.90921662, 1.0),
)  # relative error of erf: 3.4e-9
DOUBLE = Fit(
    36.0,
    (
        39324125263.7439636,
        22146391368.6402607,
        7018241783.85510724,
        1449286809.32965312,
        210047837.265059312,
        21833689.390172033,
        1598945.41585912305,
        79757.785966824875,
        2248.10926731977898,
        16.301154405866447,
    ),
    (
        34850098628.6069394,
        16452586638.0849167,
        4727716740.45183408,
        875073486.553080713,
        113936745.544839728,
        10558535.9853088008,
        664743.662987231579,
        28053.3316811426001,
        481.508506738462278,
        1.0,
    ),
)  # 1.1e-17


@np.errstate(over="ignore")  # the square of a large number may be infinite: it is limited next
def erf(x: xp.ndarray, scale: float = 1.0) -> xp.ndarray:
    """The error function of z = scale x, entry by entry: a new array, of any shape, float32, float64 or complex128.

        erf(z) = 2 / sqrt(pi) * integral of exp(-t^2) from 0 to z = tanh(z A(z^2) / B(z^2))

    tanh has the right limits and nearly the right shape: its argument, atanh(erf(z)), is z times a smooth and even
    function of z. We approximate that function by a quotient of two polynomials, in the manner of Cody (1969),
    "Rational Chebyshev approximations for the error function". The coefficients are our own, from the Remez exchange
    algorithm in 60 digits, which minimises the largest relative error of erf itself: degree 3 for float32, 9 otherwise.
    All of them are positive, so no digits cancel. With the rounding errors included, the result is right to 4 units in
    the last place, however small z is. GELU's tanh form stops this quotient after two terms.

    The function is analytic wherever it is not 1 to the last bit, so complex steps pass through; complex numbers must
    be close to the real axis, as they are there. `scale` costs nothing: it goes into the coefficients.
    """
    fit = SINGLE if x.dtype.itemsize == 4 else DOUBLE
    above = [a * scale ** (2 * k + 1) for k, a in enumerate(fit.above)]
    below = [b * scale ** (2 * k) for k, b in enumerate(fit.below)]
    y = xp.empty(x.shape, x.dtype)
    # an array: NumPy's minimum is five times slower with a number
    limit = xp.full(x.shape[-1:], fit.limit / scale**2, x.dtype)
    for block in blocks(x):
        z = x[block]
        u = xp.minimum(z * z, limit)  # beyond the limit the quotient stays constant: tanh is 1, and no power overflows
        quotient = _polynomial(above, u)
        quotient /= _polynomial(below, u)
        quotient *= z
        xp.tanh(quotient, out=y[block])
    return y


def _polynomial(coefficients: list[float], u: xp.ndarray) -> xp.ndarray:
    """c_0 + c_1 u + c_2 u^2 + ..., from the inside out (Horner's rule)."""
    *others, last = coefficients
    p = u * last
    p += others.pop()
    for c in reversed(others):
        p *= u
        p += c
    return p


def normal_cdf(x: xp.ndarray) -> xp.ndarray:
    """Phi(x), the share of a standard normal distribution that lies below x: (1 + erf(x / sqrt(2))) / 2."""
    p = erf(x, math.sqrt(0.5))
    p += 1.0
    p *= 0.5
    return p


@np.errstate(over="ignore")  # exp(-infinity) is 0, as it should be
def normal_pdf(x: xp.ndarray) -> xp.ndarray:
    """phi(x) = exp(-x^2 / 2) / sqrt(2 pi), the derivative of `normal_cdf`."""
    p = x * x
    p *= -0.5
    xp.exp(p, out=p)
    p *= 1.0 / math.sqrt(2.0 * math.pi)
    return p

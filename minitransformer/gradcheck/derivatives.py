"""Derivatives of a scalar function from its values alone: the complex step, and Richardson extrapolation.

The complex step (Squire and Trapp 1998) needs an analytic f that takes complex numbers. Taylor's series in i h is
f(x + i h) = f(x) + i h f'(x) - h^2 f''(x) / 2 - ..., so f'(x) = Im f(x + i h) / h up to h^2. Nothing is subtracted,
so nothing cancels and h may be 1e-30: the result is exact to rounding, and the step never crosses the kink of a ReLU.

Central differences (f(x + h) - f(x - h)) / 2h work for any f, but digits cancel: at best about ten are left. Richardson
extrapolation from a sequence of shrinking h reaches them, and estimates its own error.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

H = 1e-30  # any h whose square is negligible compared with 1
SHRINK = 1.4  # ratio of one difference step to the next (Ridders 1982)
ROWS = 10


def complex_step(f: Callable[[np.ndarray], Any], x: np.ndarray) -> np.ndarray:
    """The gradient of the scalar `f` at the real array x, entry by entry -> array like x, exact to rounding.

    `f` takes a complex array of x's shape. It is called once for each entry of x.
    """
    gradient = np.empty(x.shape)
    for index in np.ndindex(*x.shape):
        nudged = x.astype(np.complex128)
        nudged[index] += 1j * H
        gradient[index] = f(nudged).imag / H
    return gradient


def complex_step_directional(f: Callable[[Any], Any], x: Any, v: Any) -> float:
    """The derivative of `f` at x along v, <gradient, v>, in one call of `f` -> float, exact to rounding.

    x and v are arrays of one shape, or numbers.
    """
    return float(f(x + 1j * H * v).imag / H)


def richardson(f: Callable[[np.ndarray], Any], x: np.ndarray, step: float = 0.1) -> tuple[np.ndarray, np.ndarray]:
    """The gradient of the scalar `f` at x by extrapolated central differences -> (gradient, error), both like x."""
    gradient, error = np.empty(x.shape), np.empty(x.shape)
    for index in np.ndindex(*x.shape):
        v = np.zeros(x.shape)
        v[index] = 1.0
        gradient[index], error[index] = richardson_directional(f, x, v, step)
    return gradient, error


def richardson_directional(f: Callable[[Any], Any], x: Any, v: Any, step: float = 0.1) -> tuple[float, float]:
    """The derivative of `f` at x along v -> (derivative, its own estimate of the error), two floats.

    The error of a central difference is a series in h^2, h^4, ...; two differences with steps h and h / SHRINK,
    weighted so that the h^2 terms cancel, leave h^4, and so on up a triangle. The error of an entry is estimated by
    how much it differs from its two parents (Ridders' method). It is never estimated below what rounding of x and f can
    do to a difference with this h, because two differences may agree by chance. The entry with the smallest estimate is
    the answer.
    """
    best, best_error = math.nan, math.inf
    previous: list[float] = []
    for row in range(ROWS):
        h = step / SHRINK**row
        above, below = float(f(x + h * v)), float(f(x - h * v))
        current = [(above - below) / (2.0 * h)]
        rounding = _rounding(above, below, current[0], x, v, h)
        for column, old in enumerate(previous):
            weight = SHRINK ** (2 * (column + 1))
            current.append((current[column] * weight - old) / (weight - 1.0))
            error = max(abs(current[-1] - current[-2]), abs(current[-1] - old), rounding)
            if error < best_error:
                best, best_error = current[-1], error
        previous = current
    return best, best_error


def _rounding(above: float, below: float, slope: float, x: Any, v: Any, h: float) -> float:
    """What rounding can do to (above - below) / 2h: in the two values, and in x + h v, which moves by eps |x|."""
    eps = np.finfo(np.float64).eps
    of_values = eps * (abs(above) + abs(below)) / h
    of_points = eps * float(np.abs(x).max() / (np.abs(v).max() or 1.0)) * abs(slope) / h
    return float(of_values + of_points)

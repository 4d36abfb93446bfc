"""Derivatives of a scalar function from differences, for functions that take no complex step: Richardson extrapolation.

Central differences (f(x + h) - f(x - h)) / 2h work for any f, but digits cancel. Richardson extrapolation from steps
that shrink reaches about 12 digits. It estimates its own error, also where there is a kink near x, or at x.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

SHRINK = 2.0  # ratio of one difference step to the next
ROWS = 24  # difference steps at most ...
FIRST_ROWS = 8  # ... and at least
WINDOW = 4  # successive steps that are extrapolated together
EPS = float(np.finfo(np.float64).eps)
SLACK = 10.0  # the true error is at most this many times the estimated one


def richardson(
    f: Callable[[Any], Any],
    x: Any,
    v: Any,
    step: float = 0.1,
    enough: float = 0.0,
    scale: float = 0.0,
    rows: int = ROWS,
) -> tuple[float, float]:
    """The derivative of `f` at x along v -> (derivative, its own estimate of the error), two floats.

    If `f` returns an array, the derivative is that of its sum. There are `rows` steps; the first is `step`, and each is
    half as long as the one before. Each window of four successive steps gives one extrapolated derivative, and the
    window with the smallest estimated error is the answer. The search ends when that error is at most `enough` times
    the derivative or `scale`, whichever is larger. See `_Window` for the estimate.
    """
    base = np.asarray(f(x))
    touched = np.zeros(base.shape, bool)
    odd, even, floors = [], [], []
    best = _Window(math.nan, math.inf)
    for row in range(rows):
        h = step / SHRINK**row
        above, below = np.asarray(f(x + h * v)), np.asarray(f(x - h * v))
        odd.append(float((above - below).sum()) / (2.0 * h))
        even.append(float((above - base).sum() + (below - base).sum()) / (2.0 * h))
        touched |= (above != base) | (below != base)
        lost = EPS * float(np.linalg.norm(base[~touched])) / step
        floors.append(lost + _rounding(above[touched], below[touched], odd[-1], x, v, h))
        if row >= FIRST_ROWS - 1:
            best = _best_window(np.array(odd), np.array(even), np.array(floors))
            if best.error <= enough * max(abs(best.slope), scale):
                break
    return best.slope, best.error


class _Window(NamedTuple):
    """An extrapolated derivative with its estimated error, which is the largest of five numbers.

    1. How much the two extrapolations differ from which this one was made (Ridders' method).
    2. The extrapolation of (f(x + h) + f(x - h) - 2 f(x)) / 2h. It is 0 for a smooth f. A kink at x makes it half the
       difference of the one-sided derivatives, and a kink elsewhere in the window shows in it as much as in the
       derivative. For a single kink, the true error is at most 1.7 times the larger of 1 and 2.
    3. The first number of the smaller windows, times the ratio of the steps. There it is noise, which grows as 1 / h;
       two differences may agree by chance, but not all of them.
    4. What rounding of x and f does at least.
    5. How much other windows differ, if by far more than the estimated errors. Float32 inside the function does this:
       it is smooth for large steps, and constant for tiny ones.
    """

    slope: float
    error: float


def _best_window(odd: np.ndarray, even: np.ndarray, floors: np.ndarray) -> _Window:
    """The best of all windows except the smallest two, which only measure noise."""
    slopes, differences = _extrapolate(odd, (2, 4, 6))
    jumps, _ = _extrapolate(even, (1, 3, 5))
    noise = differences.copy()
    for i in range(len(noise) - 2, -1, -1):
        noise[i] = max(noise[i], noise[i + 1] / SHRINK)
    errors = np.maximum.reduce([noise, np.abs(jumps), floors[WINDOW - 1 :]])
    errors = np.where(np.isfinite(errors) & np.isfinite(slopes), errors, np.inf)
    i = int(errors[:-2].argmin())
    gaps = np.abs(slopes - slopes[i])
    contradict = np.isfinite(errors) & (gaps > SLACK * (errors + errors[i]))
    return _Window(float(slopes[i]), float(max(errors[i], gaps[contradict].max(initial=0.0))))


def _extrapolate(values: np.ndarray, powers: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Neville's scheme on values at steps h, h/2, h/4, ... whose errors are series in h to these powers.

    Returns the extrapolation of each window, and how much the two differ that it was made from.
    """
    for power in powers:
        weight = SHRINK**power
        differences = np.abs(np.diff(values))
        values = (weight * values[1:] - values[:-1]) / (weight - 1.0)
    return values, differences


def _rounding(above: np.ndarray, below: np.ndarray, slope: float, x: Any, v: Any, h: float) -> float:
    """What rounding can do to (above - below) / 2h: in the two values, and in x + h v, which moves by eps |x|.

    The values include those that changed with a larger step only: this one may be lost in their rounding.
    """
    of_values = EPS * float(np.linalg.norm(above) + np.linalg.norm(below)) / h
    of_points = EPS * float(np.abs(x).max() / (np.abs(v).max() or 1.0)) * abs(slope) / h
    return of_values + of_points

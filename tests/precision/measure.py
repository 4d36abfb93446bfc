"""The measurement of one case in one format: the error of each result, and that of a stable formula."""

from typing import NamedTuple

import numpy as np
from mpmath import mp

from tests.precision.exact import DIGITS, array_of, differentiate
from tests.precision.page import Line

DRAWS = 3


class Format(NamedTuple):
    """A format of floating-point numbers."""

    dtype: type
    digits: int  # binary ones
    least: int  # the smallest number is 2^least

    def ulp(self, x):
        """The unit in the last place of an mpmath number: the distance between the two numbers around it."""
        exponent = mp.frexp(x)[1] - self.digits if x else self.least
        return mp.ldexp(1, max(exponent, self.least))


SINGLE, DOUBLE = Format(np.float32, 24, -149), Format(np.float64, 53, -1074)


class Measured(NamedTuple):
    """The largest error of a result and that of a stable formula, both in the units of the case."""

    error: float
    stable: float


def measure(case, form, draws=DRAWS):
    """The results of a case in a format -> name: Measured.

    The inputs are rounded to the format first, and the definition gets the rounded numbers. A stable formula gives the
    right result of inputs that are off by half an ulp each, rounded once more: half a unit, and the largest change of
    the result when every input is moved by half an ulp, up or down by chance.
    """
    with mp.workdps(DIGITS):
        given = case.inputs(form.dtype)
        arrays = {name: array if array.dtype == object else array.astype(form.dtype) for name, array in given.items()}
        dy, got = _run(case, form, arrays)
        right, sizes = _define(case, arrays, dy, len(got) > 1)
        names = dict(zip(right, units_of(case, right), strict=True))
        units = {name: _units(kind, right[name], sizes[name], form) for name, kind in names.items()}
        moved = dict.fromkeys(right, 0.0)
        for draw in range(1 if case.long else draws):
            rng = case.rng(f"draw {draw}")
            near = {name: _moved(array, rng, form) for name, array in arrays.items()}
            others, _ = _define(case, near, _moved(dy, rng, form), len(got) > 1)
            for name in right:
                moved[name] = max(moved[name], _largest(others[name] - right[name], units[name]))
        return {
            name: Measured(_largest(_mp(got[name]) - right[name], units[name]), 0.5 + moved[name]) for name in right
        }


def lines_of(case):
    """The rows of a case: one for each result, in both formats."""
    single, double = measure(case, SINGLE), measure(case, DOUBLE)
    return [
        Line(case.function, case.hard, result, unit, *single[result], *double[result])
        for result, unit in zip(single, units_of(case, single), strict=True)
    ]


def units_of(case, results):
    """The unit of each result: the first of them is the output."""
    return [case.units[min(i, 1)] for i in range(len(results))]


def _run(case, form, arrays):
    """dy, and what the function gives: the output, and the gradients if it has any."""
    computed = any(array.dtype == object for array in arrays.values())
    y, backward = case.run(form.dtype) if computed else case.run(**arrays)
    assert y.dtype == form.dtype
    dy = np.asarray(case.rng("dy").standard_normal(y.shape)).astype(form.dtype)
    got = {"y": np.array(y)}
    if backward:
        gradients = backward(dy)
        gradients = gradients if isinstance(gradients, tuple) else (gradients,)
        names = [name for name in arrays if name not in case.constants]
        got |= {f"d{name}": gradient for name, gradient in zip(names, gradients, strict=True)}
    return dy, got


def _define(case, arrays, dy, with_gradients):
    """The right output and gradients, and their sizes."""
    inputs = {name: array_of(_mp(array)) for name, array in arrays.items()}
    y = case.define(**inputs)
    right, sizes = {"y": _read(y, "value")}, {"y": _read(y, "size")}
    if with_gradients:
        differentiate(y, _mp(dy))
        for name, array in inputs.items():
            if name not in case.constants:
                right[f"d{name}"], sizes[f"d{name}"] = _read(array, "gradient"), _read(array, "gradient_size")
    return right, sizes


def _read(array, attribute):
    return np.frompyfunc(lambda x: getattr(x, attribute), 1, 1)(array)


def _mp(array):
    """The same numbers in mpmath, without rounding."""
    array = np.asarray(array)
    return array if array.dtype == object else np.frompyfunc(lambda x: mp.mpf(float(x)), 1, 1)(array)


def _moved(array, rng, form):
    """Every number half an ulp up or down; zeros stay. Numbers that a function computes by itself are float64."""
    form = DOUBLE if array.dtype == object else form
    signs = rng.choice([-0.5, 0.5], array.shape)
    return np.frompyfunc(lambda x, sign: x + sign * form.ulp(x) if x else x, 2, 1)(_mp(array), signs)


def _units(kind, right, sizes, form):
    """The unit for each entry of a result."""
    size = np.abs(np.asarray(sizes if kind == "terms" else right, object))
    if kind == "one":
        size = np.full(np.shape(size), mp.one, object)
    if kind == "array":
        size = np.full(np.shape(size), np.max(size), object)
    return np.frompyfunc(form.ulp, 1, 1)(size)


def _largest(errors, units):
    return float(np.max(np.abs(np.asarray(errors, object)) / units))

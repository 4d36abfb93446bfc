"""Derivatives found by evaluation, held against functions whose derivatives are known by formula.

The complex step must be exact to rounding, Richardson's extrapolation nearly so, and what Richardson says of its own
error must be true: a check that believes a false estimate calls a right gradient wrong.
"""

import math

import numpy as np
import pytest

from minitransformer.gradcheck import complex_step, richardson
from tests.helpers import relative_error

# name: (f, f'), all analytic for x > 0
FUNCTIONS = {
    "exp": (np.exp, np.exp),
    "sin": (np.sin, np.cos),
    "tanh": (np.tanh, lambda x: 1.0 / np.cosh(x) ** 2),
    "sqrt": (np.sqrt, lambda x: 0.5 / np.sqrt(x)),
    "x^5": (lambda x: x**5, lambda x: 5.0 * x**4),
    "bell": (lambda x: np.exp(-x * x), lambda x: -2.0 * x * np.exp(-x * x)),
    "line": (lambda x: 3.0 * x, lambda x: 3.0 + 0.0 * x),
    "sin on a large value": (lambda x: 1e9 + np.sin(x), np.cos),
}
every_function = pytest.mark.parametrize("name", FUNCTIONS)
POINTS = np.linspace(0.25, 2.0, 4)


def frozen(array):
    array.setflags(write=False)
    return array


def weighted(name):
    """x -> sum of w f(x) over a (2, 3, 1) array with its x, and the gradient by the formula."""
    f, derivative = FUNCTIONS[name]
    rng = np.random.default_rng(1)
    x, w = frozen(rng.uniform(0.3, 2.0, (2, 3, 1))), rng.standard_normal((2, 3, 1))
    return lambda z: (w * f(z)).sum(), x, w * derivative(x)


@every_function
def test_complex_step_is_exact_to_rounding(name):
    f, x, expected = weighted(name)
    assert relative_error(complex_step(f, x), expected) <= 1e-15


def test_complex_step_keeps_all_digits_where_differences_cancel():
    """The example of Squire and Trapp, e^x / (sin^3 x + cos^3 x) at 1.5."""
    s, c, e = math.sin(1.5), math.cos(1.5), math.exp(1.5)
    expected = e * (s**3 + c**3 - 3 * s * s * c + 3 * c * c * s) / (s**3 + c**3) ** 2
    got = complex_step(lambda x: np.exp(x) / (np.sin(x) ** 3 + np.cos(x) ** 3), np.array(1.5))
    assert abs(got - expected) <= 1e-14 * expected


@pytest.mark.parametrize(("x", "slope"), [(1e-12, 1.0), (-1e-12, 0.0)])
def test_complex_step_never_crosses_a_kink(x, slope):
    assert complex_step(lambda z: np.maximum(z, 0), np.array(x)) == slope


@pytest.mark.parametrize("shape", [(), (1,), (2, 3), (1, 2, 3)])
def test_complex_step_calls_once_for_each_entry_and_keeps_the_shape(shape):
    calls = []

    def f(z):
        calls.append((z.shape, z.dtype))
        return (z * z).sum()

    x = frozen(np.full(shape, 0.5))
    assert np.array_equal(complex_step(f, x), 2 * x)
    assert calls == [(shape, np.complex128)] * math.prod(shape)


@every_function
def test_richardson_knows_its_own_error_even_with_a_bad_step(name):
    """A step too small drowns in rounding: two differences may then agree by chance and both be wrong."""
    f, derivative = FUNCTIONS[name]
    for step in (0.1, 1e-2, 1e-4, 1e-6, 1e-9, 1e-12):
        for x in POINTS:
            slope, own_error = richardson(f, x, 1.0, step)
            assert abs(slope - derivative(x)) <= 10 * own_error, f"step {step} at {x}"
            assert step < 0.1 or own_error <= (1e-4 if "large value" in name else 1e-11), "nearly all digits"


@pytest.mark.parametrize("x", [0.3, 0.03, 1e-3, 1e-4, -0.02])
def test_richardson_steps_around_a_kink_nearby(x):
    """With steps longer than |x|, the differences of |x| are not its derivative."""
    slope, own_error = richardson(lambda x: np.abs(x) + np.sin(x), x, 1.0)
    assert abs(slope - np.sign(x) - np.cos(x)) <= 10 * own_error <= 1e-7


@pytest.mark.parametrize(
    "f", [np.abs, lambda x: np.maximum(x, 0.0), lambda x: np.abs(x) + x**3], ids=["abs", "relu", "sum"]
)
def test_richardson_says_that_it_knows_no_derivative_at_a_kink(f):
    """The central differences of |x| at 0 are all 0, which only the second differences give away."""
    _, own_error = richardson(f, 0.0, 1.0)
    assert own_error >= 0.4


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.exhaustive) for seed in range(1, 5))])
def test_richardson_knows_its_own_error_among_many_kinks(seed):
    rng = np.random.default_rng([8, seed])
    for _ in range(40):
        places, sizes = rng.uniform(-0.3, 0.3, 12), rng.standard_normal(12) * 10.0 ** rng.uniform(-3, 0, 12)
        slope, own_error = richardson(lambda t, p=places, s=sizes: s * np.abs(t - p), 0.0, 1.0)
        assert abs(slope + (sizes * np.sign(places)).sum()) <= 10 * own_error


def test_richardson_does_not_believe_differences_of_float32():
    """With long steps the slope is 1, with tiny ones the function is a staircase."""
    _, own_error = richardson(lambda x: np.float64(np.float32(x)), 0.7, 1.0, 1e-5)
    assert own_error > 1e-3


def test_richardson_of_an_array_is_that_of_its_sum_without_what_does_not_change():
    noise = np.array([1e12, 0.0])
    slope, own_error = richardson(lambda x: noise + np.array([0.0, 1.0]) * np.sin(x), 0.5, 1.0)
    assert abs(slope - np.cos(0.5)) <= 1e-11
    assert own_error <= 1e-2


def test_richardson_stops_when_that_is_enough():
    def calls(**options):
        seen = []
        richardson(lambda x: seen.append(x) or np.sin(x), 0.5, 1.0, **options)
        return len(seen)

    assert calls(enough=1e-9) == calls(enough=1e-15, scale=1e6) < calls(enough=1e-14, scale=1e-6) <= calls()


def test_richardson_of_an_undefined_function_admits_that_it_knows_nothing():
    slope, own_error = richardson(lambda x: x * math.nan, 0.5, 1.0)
    assert math.isnan(slope)
    assert own_error == math.inf

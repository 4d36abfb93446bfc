"""The hyperbolic tangent: its values, its gradient entry by entry, and slopes that are 1 at most."""

import math

import numpy as np
import pytest

from minitransformer.functional import tanh, tanh_backward
from tests.helpers import device, host, protected, random_array, relative_error

rng = np.random.default_rng(17)


def test_values_are_those_of_the_formula():
    x = 2 * rng.standard_normal((3, 4, 5))
    expected = [(math.exp(2 * v) - 1) / (math.exp(2 * v) + 1) for v in x.ravel()]
    y, _ = tanh(on_device(x))
    assert relative_error(host(y).ravel(), np.array(expected)) <= 1e-14


def on_device(x):
    """x on the device, protected."""
    return protected(device(x))


def test_the_gradient_is_nowhere_larger_than_the_one_that_comes_in():
    x, dy = random_array(rng, 50, 7), random_array(rng, 50, 7)
    _, cache = tanh(x)
    dx = host(tanh_backward(dy, cache))
    assert (np.abs(dx) <= np.abs(host(dy))).all()
    assert (np.sign(dx) == np.sign(host(dy))).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_dtype_stays_and_saturation_is_exact(dtype):
    x = on_device(np.array([[-1e4, -0.0, 1e4]], dtype))
    y, cache = tanh(x)
    dx = tanh_backward(y, cache)
    assert y.dtype == dx.dtype == dtype
    assert host(y).tolist() == [[-1.0, 0.0, 1.0]]
    assert host(dx).tolist() == [[0.0, 0.0, 0.0]]

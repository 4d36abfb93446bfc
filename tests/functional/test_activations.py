"""The activations of single entries: their formulas, what holds at x and -x, kinks and far tails."""

import numpy as np
import pytest

from minitransformer import functional
from minitransformer.functional import relu, relu_backward, silu, tanh, tanh_backward
from tests.helpers import device, host, random_array, relative_error, same

SMOOTH = ("gelu", "gelu_tanh", "silu")
every_smooth_one = pytest.mark.parametrize("name", SMOOTH)


def pair(name):
    return getattr(functional, name), getattr(functional, f"{name}_backward")


def example():
    """x, well into both tails, and dy (B, T, F)."""
    rng = np.random.default_rng(0)
    x = 3.0 * rng.standard_normal((2, 4, 7))
    x.setflags(write=False)
    return device(x), random_array(rng, 2, 4, 7)


def test_relu_gradient_at_the_kink_is_zero():
    y, cache = relu(device(np.array([0.0, -0.0, 5e-324])))
    assert same(y, [0.0, 0.0, 5e-324])
    assert same(relu_backward(device(np.array([3.0, 3.0, 3.0])), cache), [0.0, 0.0, 3.0])


@every_smooth_one
def test_entries_and_slopes_at_x_and_minus_x_differ_by_x_and_sum_to_one(name):
    x, dy = example()
    activation, backward = pair(name)
    (y, cache), (opposite, opposite_cache) = activation(x), activation(-x)
    assert relative_error(y - opposite, x) <= 1e-15
    assert relative_error(backward(dy, cache) + backward(dy, opposite_cache), dy) <= 1e-14


@every_smooth_one
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_far_out_it_is_the_identity_or_nothing_and_no_number_overflows(name, dtype):
    far = np.array([200.0, 800.0, 1e4], dtype)
    activation, backward = pair(name)
    for x, slope in ((far, 1.0), (-far, 0.0)):
        y, cache = activation(device(x))
        dx = backward(device(np.ones(3, dtype)), cache)
        assert np.abs(host(y) - slope * x).max() <= 1e-80
        assert np.abs(host(dx) - slope).max() <= 1e-80


def test_far_to_the_left_silu_keeps_its_digits():
    x = np.array([-20.0, -40.0, -80.0])
    y = host(silu(device(x))[0])
    assert (np.abs(y - x * np.exp(x)) <= 1e-7 * np.abs(y)).all()  # not the 0 that 1 - tanh would give


def test_the_gradient_of_tanh_is_nowhere_larger_than_the_one_that_comes_in_and_saturation_is_exact():
    x, dy = example()
    dx = host(tanh_backward(dy, tanh(x)[1]))
    assert (np.abs(dx) <= np.abs(host(dy))).all()
    assert (np.sign(dx) == np.sign(host(dy))).all()
    y, cache = tanh(device(np.array([-1e4, -0.0, 1e4])))
    assert host(y).tolist() == [-1.0, 0.0, 1.0]
    assert host(tanh_backward(y, cache)).tolist() == [0.0, 0.0, 0.0]

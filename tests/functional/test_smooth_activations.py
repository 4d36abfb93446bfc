"""GELU, its tanh form and SiLU are x times a share of x; their slopes at x and -x sum to 1."""

import math

import numpy as np
import pytest

from minitransformer import functional
from minitransformer.functional import gelu, gelu_tanh, silu
from tests.helpers import device, host, random_array, relative_error, same


def naive_gelu(x):
    """x times the share of the normal distribution below x."""
    return x * 0.5 * math.erfc(-x / math.sqrt(2))


def naive_gelu_tanh(x):
    """0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))"""
    return 0.5 * x * (1 + math.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


def naive_silu(x):
    """x / (1 + exp(-x))"""
    return x / (1 + math.exp(-x))


NAIVE = {"gelu": naive_gelu, "gelu_tanh": naive_gelu_tanh, "silu": naive_silu}
every_one = pytest.mark.parametrize("name", NAIVE)


def pair(name):
    return getattr(functional, name), getattr(functional, f"{name}_backward")


def example(dtype=np.float64):
    """x, well into both tails, and dy (B, T, F)."""
    rng = np.random.default_rng(0)
    x = (3.0 * rng.standard_normal((2, 4, 7))).astype(dtype)
    x.setflags(write=False)
    return device(x), random_array(rng, 2, 4, 7, dtype=dtype)


@every_one
def test_each_entry_equals_the_formula(name):
    x, _ = example()
    expected = np.vectorize(NAIVE[name])(host(x))
    assert relative_error(pair(name)[0](x)[0], expected) <= 1e-15


@every_one
def test_an_entry_less_that_of_its_opposite_is_the_entry_itself(name):
    x, _ = example()
    activation, _ = pair(name)
    assert relative_error(activation(x)[0] - activation(-x)[0], x) <= 1e-15


@every_one
def test_the_slopes_at_an_entry_and_its_opposite_sum_to_one(name):
    x, dy = example()
    activation, backward = pair(name)
    slopes = backward(dy, activation(x)[1]) + backward(dy, activation(-x)[1])
    assert relative_error(slopes, dy) <= 1e-14


@every_one
def test_the_slope_at_zero_is_one_half(name):
    activation, backward = pair(name)
    zero = device(np.zeros(2))
    y, cache = activation(zero)
    assert same(y, np.zeros(2))
    assert relative_error(backward(device(np.ones(2)), cache), np.full(2, 0.5)) <= 1e-15


@every_one
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


def test_the_two_gelus_are_near_each_other_and_not_equal():
    x = device(np.linspace(-6.0, 6.0, 1201))
    difference = np.abs(host(gelu(x)[0]) - host(gelu_tanh(x)[0])).max()
    assert 4e-4 < difference < 5e-4

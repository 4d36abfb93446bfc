"""Dropout zeroes a share of the entries, keeps the mean, and its backward uses the mask of the forward pass."""

import math

import numpy as np
import pytest

from minitransformer.functional import dropout, dropout_backward
from minitransformer.system.generators import make_generator
from tests.helpers import device, host, random_array, same


def example(dtype=np.float64):
    """x and dy (B, T, C)."""
    rng = np.random.default_rng(9)
    return random_array(rng, 3, 4, 5, dtype=dtype), random_array(rng, 3, 4, 5, dtype=dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("rate", [0.1, 0.5, 0.9])
def test_dropout_preserves_the_mean(rate, dtype):
    count = 200_000
    y, _ = dropout(device(np.ones(count, dtype)), rate, make_generator(1))
    standard_error = math.sqrt(rate / (1 - rate) / count)
    assert abs(host(y).mean(dtype=np.float64) - 1.0) <= 4 * standard_error


def test_dropout_gradient_is_zero_just_where_the_output_is_zero():
    x, dy = example()
    y, mask = dropout(x, 0.4, make_generator(3))
    assert same(dropout_backward(dy, mask) == 0, y == 0)


def test_no_two_slices_along_any_axis_share_a_mask():
    y, _ = dropout(device(np.ones((20, 30, 40))), 0.4, make_generator(10))
    for axis, length in enumerate(y.shape):
        assert len({piece.tobytes() for piece in np.moveaxis(host(y), axis, 0)}) == length


@pytest.mark.parametrize(("rate", "seed"), [(0.4, None), (0.0, 7)], ids=["no generator", "rate 0"])
def test_dropout_without_generator_or_at_rate_zero_is_the_identity_itself(rate, seed):
    x, dy = example()
    y, mask = dropout(x, rate, None if seed is None else make_generator(seed))
    assert y is x
    assert dropout_backward(dy, mask) is dy


def test_dropout_at_a_rate_just_below_one_keeps_a_share():
    y = host(dropout(device(np.ones(2**20)), 0.999999, make_generator(3))[0])
    assert np.isfinite(y).all()
    assert 0 < (y != 0).sum() < 100


def test_a_dropped_entry_is_zero_however_large_it_was():
    largest = np.finfo(np.float32).max
    with np.errstate(over="ignore"):
        y = host(dropout(device(np.full(100, largest)), 0.5, make_generator(3))[0])
    assert set(y.tolist()) == {0.0, math.inf}

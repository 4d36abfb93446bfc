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


@pytest.mark.parametrize("rate", [0.1, 0.4])
def test_dropout_zeroes_an_entry_or_divides_it_by_the_keep_rate(rate):
    x, _ = example()
    y, _ = dropout(x, rate, make_generator(0))
    rounded = round(rate * 2**16) / 2**16
    kept = 0
    for before, after in zip(host(x).ravel(), host(y).ravel(), strict=True):
        assert after == 0 or abs(after - before / (1 - rounded)) <= 1e-12 * abs(after)
        kept += after != 0
    assert 0 < kept < x.size


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


def test_the_same_seed_replays_the_mask_and_another_draws_anew():
    x, _ = example()
    y, _ = dropout(x, 0.4, make_generator(4))
    assert same(dropout(x, 0.4, make_generator(4))[0], y)
    assert not same(dropout(x, 0.4, make_generator(5))[0], y)


def test_no_two_slices_along_any_axis_share_a_mask():
    y, _ = dropout(device(np.ones((20, 30, 40))), 0.4, make_generator(10))
    for axis, length in enumerate(y.shape):
        assert len({piece.tobytes() for piece in np.moveaxis(host(y), axis, 0)}) == length


def test_two_uses_of_one_generator_draw_two_masks():
    x, _ = example()
    rng = make_generator(6)
    assert not same(dropout(x, 0.4, rng)[0], dropout(x, 0.4, rng)[0])


@pytest.mark.parametrize(("rate", "seed"), [(0.4, None), (0.0, 7)], ids=["no generator", "rate 0"])
def test_dropout_without_generator_or_at_rate_zero_is_the_identity_itself(rate, seed):
    x, dy = example()
    y, mask = dropout(x, rate, None if seed is None else make_generator(seed))
    assert y is x
    assert dropout_backward(dy, mask) is dy


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_dropout_keeps_the_dtype_and_writes_to_no_input(dtype):
    x, dy = example(dtype)  # both are read-only
    y, mask = dropout(x, 0.4, make_generator(8))
    assert y.dtype == dropout_backward(dy, mask).dtype == dtype


def test_dropout_at_a_rate_just_below_one_keeps_a_share():
    y = host(dropout(device(np.ones(2**20)), 0.999999, make_generator(3))[0])
    assert np.isfinite(y).all()
    assert 0 < (y != 0).sum() < 100


def test_dropout_remembers_which_entries_it_kept_and_their_scale():
    x, _ = example()
    y, mask = dropout(x, 0.25, make_generator(3))
    assert same(mask.keep, y != 0)
    assert mask.scale == 4 / 3


def test_a_dropped_entry_is_zero_however_large_it_was():
    largest = np.finfo(np.float32).max
    with np.errstate(over="ignore"):
        y = host(dropout(device(np.full(100, largest)), 0.5, make_generator(3))[0])
    assert set(y.tolist()) == {0.0, math.inf}

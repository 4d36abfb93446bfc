"""The fast reductions say what their plain forms say, for every length of a row."""

import math
from unittest import mock

import numpy as np
import pytest

from minitransformer.functional import reductions
from tests.helpers import device, host, random_array, relative_error, same

# the forms for large arrays, also where the arrays of a test are small
as_for_many = mock.patch.object(reductions, "FEW", 0)
LENGTHS = [1, 2, 3, 15, 16, 17, 31, 33, 64, 100, 1025]


@as_for_many
@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex128"])
def test_the_largest_of_a_row_is_found_exactly(length, dtype):
    x = random_array(np.random.default_rng(length), 2, 3, length).astype(dtype)
    got = reductions.row_max(x)
    assert got.shape == (2, 3, 1)
    assert got.dtype == x.dtype
    for row, largest in zip(host(x).reshape(-1, length), host(got).ravel(), strict=True):
        assert largest == max(row, key=lambda entry: entry.real)


@as_for_many
@pytest.mark.parametrize("length", LENGTHS)
def test_the_largest_is_found_at_every_place_of_a_row(length):
    assert same(reductions.row_max(device(np.eye(length) - 1.0)), np.zeros((length, 1)))


@as_for_many
@pytest.mark.parametrize("length", LENGTHS)
def test_sums_means_and_products_along_rows_equal_those_of_loops(length):
    rng = np.random.default_rng(length)
    x, y = random_array(rng, 2, 3, length), random_array(rng, 2, 3, length)
    sums = [[[sum(row)] for row in rows] for rows in x.tolist()]
    assert relative_error(reductions.row_sum(x), sums) <= 1e-13
    assert relative_error(reductions.row_mean(x), np.array(sums) / length) <= 1e-13
    pairs = zip(x.reshape(-1, length).tolist(), y.reshape(-1, length).tolist(), strict=True)
    dots = [sum(a * b for a, b in zip(*pair, strict=True)) for pair in pairs]
    assert relative_error(reductions.row_dot(x, y).ravel(), dots) <= 1e-13


@pytest.mark.parametrize("eps", [0.0, 1e-12, 0.3])
@pytest.mark.parametrize("size", [1e-25, 1.0, 1e25])
def test_the_inverse_of_a_root_mean_square_is_right_for_squares_beyond_the_range(size, eps):
    x = (size * np.random.default_rng(3).standard_normal((2, 3, 33))).astype(np.float32)
    got = host(reductions.row_inverse_rms(device(x), eps))
    assert got.dtype == np.float32
    for row, inverse in zip(x.reshape(-1, 33).tolist(), got.ravel().tolist(), strict=True):
        assert math.isclose(inverse, 1 / math.sqrt(sum(entry**2 for entry in row) / 33 + eps), rel_tol=1e-6)


@pytest.mark.parametrize("count", [1, 4, 129])
def test_sums_and_products_along_columns_equal_those_of_loops(count):
    rng = np.random.default_rng(count)
    x, y = random_array(rng, count, 5), random_array(rng, count, 5)
    sums, dots = [0.0] * 5, [0.0] * 5
    x_host, y_host = host(x), host(y)
    for n in range(count):
        for c in range(5):
            sums[c] += x_host[n, c]
            dots[c] += x_host[n, c] * y_host[n, c]
    assert relative_error(reductions.column_sum(x), sums) <= 1e-13
    assert relative_error(reductions.column_dot(x, y), dots) <= 1e-13


@pytest.mark.parametrize("length", LENGTHS)
def test_small_arrays_are_reduced_as_large_ones_are(length):
    x = random_array(np.random.default_rng(length), 2, 3, length)
    few = [reductions.row_sum(x), reductions.row_max(x)]
    with as_for_many:
        many = [reductions.row_sum(x), reductions.row_max(x)]
    assert relative_error(few[0], host(many[0])) <= 1e-13
    assert same(few[1], host(many[1]))


def test_the_sum_of_a_row_as_long_as_a_vocabulary_keeps_its_digits():
    """One number after the other would lose two of them: the sum grows, and the rest of each entry is cut off."""
    x = np.full((2, 2**18), 0.1, np.float32)
    expected = np.full((2, 1), math.fsum(x[0].tolist()))
    assert relative_error(reductions.row_sum(device(x)), expected) <= 1e-6


@pytest.mark.host_only
@pytest.mark.parametrize("numbers", [5, 14, 15])  # a row of 7 is longer, two are as many, or almost
@pytest.mark.parametrize("shape", [(23, 7), (2, 3, 5, 7), (1, 1, 11, 7), (4, 0, 7), (30,), ()])
def test_blocks_visit_each_row_once_and_hold_few_rows(monkeypatch, shape, numbers):
    monkeypatch.setattr(reductions, "BLOCK", numbers)
    visits, blocks = np.zeros(shape, int), 0
    for block in reductions.blocks(visits):
        visits[block] += 1
        assert visits[block].size <= max(numbers, 7) or len(shape) < 2
        assert visits[block].shape[-1:] == shape[-1:]
        blocks += 1
    assert (visits == 1).all()
    assert blocks <= max(1, visits.size // 7)

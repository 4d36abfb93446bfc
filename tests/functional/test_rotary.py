"""rotate multiplies each pair of features by e^(i angle): scores depend on distance alone, and backward undoes it."""

import itertools

import numpy as np
import pytest

from minitransformer.functional import rotary_tables, rotate, sinusoidal_positions
from tests.helpers import device, host, random_array, relative_error

B, H, T, D = 2, 3, 5, 8
START = 7


def tables(length=T, start=0, width=D, base=10000.0, dtype=np.float64):
    """The cosines and sines of `length` positions from `start` on, on the device."""
    return [device(table[start:]) for table in rotary_tables(start + length, width, base, dtype)]


def example(dtype=np.float64):
    """x and dy."""
    rng = np.random.default_rng(61)
    return random_array(rng, B, H, T, D, dtype=dtype), random_array(rng, B, H, T, D, dtype=dtype)


def test_a_score_depends_on_the_distance_alone_and_at_distance_zero_is_that_without_rotation():
    """One query and one key at all positions: the scores are equal along each diagonal."""
    rng, length = np.random.default_rng(62), 11
    q, k = rng.standard_normal((2, D))
    queries, keys = (device(np.broadcast_to(x, (1, 1, length, D)).copy()) for x in (q, k))
    cos, sin = tables(length)
    scores = host(rotate(queries, cos, sin)[0] @ rotate(keys, cos, sin)[0].swapaxes(-1, -2))[0, 0]
    for distance in range(1 - length, length):
        along = np.diagonal(scores, distance)
        assert relative_error(along, np.full(len(along), along[0])) <= 1e-12
    assert relative_error(np.diagonal(scores), np.full(length, q @ k)) <= 1e-12
    assert len(np.unique(np.round(scores[0], 6))) == length, "other distances have other scores"


@pytest.mark.host_only  # the tables are computed with NumPy whatever the backend
def test_the_tables_are_the_sinusoids_of_the_paper():
    cos, sin = rotary_tables(23, D)
    table = sinusoidal_positions(23, D)
    assert cos.dtype == sin.dtype == np.float32
    assert np.array_equal(cos, table[:, 1::2])
    assert np.array_equal(sin, table[:, 0::2])


@pytest.mark.host_only
def test_stretched_angles_are_all_divided_or_only_those_of_slow_pairs():
    length, width, base, factor, original = 50, 14, 30.0, 4.0, 60
    for original_len in (None, original):
        cos, sin = rotary_tables(length, width, base, np.float64, factor, original_len)
        for t, i in itertools.product(range(length), range(width // 2)):
            speed = base ** (-2 * i / width)
            turns = original * speed / (2 * np.pi)
            if original_len is None or turns < 1:
                speed /= factor
            elif turns <= 4:
                kept = (turns - 1) / (4 - 1)
                speed = kept * speed + (1 - kept) * speed / factor
            assert abs(cos[t, i] - np.cos(t * speed)) <= 1e-13
            assert abs(sin[t, i] - np.sin(t * speed)) <= 1e-13
    kinds = np.digitize(original * base ** (-2 * np.arange(width // 2) / width) / (2 * np.pi), [1, 4])
    assert set(kinds) == {0, 1, 2}, "pairs of all three kinds must be tried"


@pytest.mark.host_only
def test_the_layout_of_x_in_memory_does_not_matter():
    x, _ = example()
    features_first = np.ascontiguousarray(x.transpose(0, 1, 3, 2)).transpose(0, 1, 3, 2)
    assert features_first.strides[-1] != features_first.itemsize == features_first.strides[-2]
    y, _ = rotate(device(x), *tables())
    assert np.array_equal(host(rotate(device(features_first), *tables())[0]), host(y))

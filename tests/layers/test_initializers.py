"""Initial weights: the right bounds and spread, and the same numbers in every dtype."""

import math

import numpy as np
import pytest

from minitransformer.layers.initializers import normal, xavier_uniform

FAN_IN, FAN_OUT = 300, 500
pytestmark = pytest.mark.host_only  # weights are drawn with NumPy whatever the backend


def test_xavier_weights_fill_the_interval_of_glorot_and_bengio_evenly():
    weights = xavier_uniform(np.random.default_rng(0), FAN_IN, FAN_OUT, dtype=np.float64)
    bound = math.sqrt(6 / (FAN_IN + FAN_OUT))
    assert weights.shape == (FAN_IN, FAN_OUT)
    assert 0.999 * bound < weights.max() <= bound
    assert -bound <= weights.min() < -0.999 * bound
    assert abs(weights.mean()) <= 4 * bound / math.sqrt(3 * weights.size)
    assert abs(weights.std() / (bound / math.sqrt(3)) - 1) <= 0.01


def test_blocks_are_drawn_independently_with_the_bound_of_one_block():
    weights = xavier_uniform(np.random.default_rng(1), FAN_IN, FAN_OUT, blocks=3, dtype=np.float64)
    assert weights.shape == (FAN_IN, 3 * FAN_OUT)
    assert 0.999 < weights.max() / math.sqrt(6 / (FAN_IN + FAN_OUT)) <= 1
    first, second, third = np.split(weights, 3, axis=1)
    for one, other in ((first, second), (second, third), (first, third)):
        assert abs(np.corrcoef(one.ravel(), other.ravel())[0, 1]) <= 4 / math.sqrt(one.size)


def test_normal_weights_have_the_given_standard_deviation():
    weights = normal(np.random.default_rng(2), (400, 300), 0.25, np.float64)
    assert abs(weights.mean()) <= 4 * 0.25 / math.sqrt(weights.size)
    assert abs(weights.std() / 0.25 - 1) <= 0.01


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex128])
def test_every_dtype_starts_from_the_same_draws(dtype):
    for draw in (
        lambda dtype: xavier_uniform(np.random.default_rng(3), 4, 5, dtype=dtype),
        lambda dtype: normal(np.random.default_rng(3), (4, 5), 0.5, dtype),
    ):
        assert draw(dtype).dtype == dtype
        assert np.array_equal(draw(dtype), draw(np.float64).astype(dtype))


def test_without_a_generator_the_weights_are_zeros():
    assert np.array_equal(xavier_uniform(None, 4, 5, blocks=2), np.zeros((4, 10), np.float32))
    assert np.array_equal(normal(None, (4, 5), 1.0), np.zeros((4, 5), np.float32))

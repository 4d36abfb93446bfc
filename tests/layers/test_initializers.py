"""Initial weights: the right bounds and spread, and the same numbers in every dtype."""

import math

import numpy as np
import pytest

from minitransformer.layers import (
    GRU,
    LSTM,
    ActivatedFeedForward,
    Conv1d,
    CrossAttention,
    GeneralCrossAttention,
    GeneralSelfAttention,
    MemoryAttention,
    SelfAttention,
)
from minitransformer.layers.initializers import normal, xavier_uniform
from tests.helpers import host

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


WIDTH, READ = 64, 96
MAPS = {  # a parameter, and the fan in and fan out of each of its maps
    "queries, keys and values": (lambda rng: SelfAttention(WIDTH, 4, rng=rng).qkv.W, WIDTH, WIDTH),
    "queries and shared keys": (lambda rng: GeneralSelfAttention(WIDTH, 4, num_kv_heads=1, rng=rng).qkv.W, WIDTH, 96),
    "queries to a memory": (lambda rng: CrossAttention(WIDTH, 4, rng=rng).q.W, WIDTH, WIDTH),
    "keys of a memory": (lambda rng: GeneralCrossAttention(WIDTH, 4, num_kv_heads=2, rng=rng).kv.W, WIDTH, 32),
    "inputs of an LSTM": (lambda rng: LSTM(READ, WIDTH, rng=rng).directions[0].W, READ, WIDTH),
    "states of an LSTM": (lambda rng: LSTM(READ, WIDTH, rng=rng).directions[0].U, WIDTH, WIDTH),
    "inputs of a GRU": (lambda rng: GRU(READ, WIDTH, rng=rng).directions[0].W, READ, WIDTH),
    "states of a GRU": (lambda rng: GRU(READ, WIDTH, rng=rng).directions[0].U, WIDTH, WIDTH),
    "gates and what they let through": (
        lambda rng: ActivatedFeedForward(WIDTH, READ, activation="swiglu", rng=rng).expand.W,
        WIDTH,
        READ,
    ),
    "convolution": (lambda rng: Conv1d(WIDTH, READ, 3, rng=rng).W, 3 * WIDTH, READ),
}


@pytest.mark.parametrize("name", MAPS)
def test_every_map_fills_the_interval_for_its_own_widths(name):
    make, fan_in, fan_out = MAPS[name]
    weights, bound = host(make(np.random.default_rng(4)).data), math.sqrt(6 / (fan_in + fan_out))
    assert 0.99 * bound < weights.max() <= 1.0001 * bound
    assert -1.0001 * bound <= weights.min() < -0.99 * bound
    assert abs(weights.std() / (bound / math.sqrt(3)) - 1) <= 0.03


def test_the_weights_of_additive_scores_have_the_standard_deviation_of_one_map():
    weights = host(MemoryAttention("additive", 400, rng=np.random.default_rng(5)).w.data)
    assert abs(weights.mean()) <= 4 / 400
    assert 0.85 < weights.std() * math.sqrt(400) < 1.15

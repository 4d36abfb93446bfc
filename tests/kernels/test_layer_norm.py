"""The LayerNorm kernels give what the plain formulas give, for any number and length of rows."""

import numpy as np
import pytest

from minitransformer import kernels
from minitransformer.functional import layer_norm, layer_norm_backward
from minitransformer.functional.layer_norm import LayerNormCache
from tests.helpers import random_host_array, relative_error
from tests.kernels.comparing import DTYPES, assert_same, fused, plain

pytestmark = pytest.mark.exhaustive  # by default test_model.py runs every kernel once
# one feature; fewer and more than a warp; the longest row of a warp, and one more; a block takes several rounds; more
# rows than stand in one chunk of the column sums
SHAPES = [(3, 1), (2, 3, 7), (5, 33), (4, 1024), (2, 1025), (2, 3000), (2, 77, 5)]


def _arrays(shape, dtype, seed=0):
    rng = np.random.default_rng(seed)
    x, gamma, beta, dy = (random_host_array(rng, *size, dtype=dtype) for size in (shape, shape[-1:], shape[-1:], shape))
    return x, gamma, beta, dy


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_layer_norm_forward_and_backward(device, shape, dtype):
    x, gamma, beta, dy = _arrays(shape, dtype)
    expected = plain(layer_norm, x, gamma, beta)
    y, cache = fused("layer_norm", x, gamma, beta)
    assert_same((y, cache), expected, dtype)
    expected_backward = plain(layer_norm_backward, dy, expected[1])
    assert_same(fused("layer_norm_backward", dy, cache), expected_backward, dtype)  # fused forward, fused backward
    plain_cache = LayerNormCache(*(array.astype(dtype) for array in expected[1]))
    assert_same(fused("layer_norm_backward", dy, plain_cache), expected_backward, dtype)  # plain forward


@pytest.mark.parametrize("C", [7, 70, 2000])
@pytest.mark.parametrize("mean", [1e3, -1e6])
def test_the_rounding_of_a_large_mean_does_not_show_in_float32(device, C, mean):
    x, gamma, beta, _ = _arrays((3, C), np.float32)
    x = x + np.float32(mean)
    y, cache = fused("layer_norm", x, gamma, beta)
    expected, expected_cache = plain(layer_norm, x, gamma, beta)
    assert relative_error(y, expected) < 3e-6
    assert relative_error(cache.rstd, expected_cache.rstd) < 3e-6


@pytest.mark.parametrize("value", [0.1, 1e6 / 3, -1e30])
def test_equal_features_become_zero_however_large_they_are(device, value):
    _, gamma, beta, _ = _arrays((2, 107), np.float32)  # 107 times a rounded 1 / 107 is not 1
    y, _ = fused("layer_norm", np.full((2, 107), value, np.float32), gamma, beta)
    assert relative_error(y, np.broadcast_to(beta, y.shape)) < 1e-5


def test_eps_is_the_one_that_was_asked_for(device):
    x, gamma, beta, _ = _arrays((3, 7), np.float64)
    for eps in (0.0, 0.5):
        assert_same(fused("layer_norm", x, gamma, beta, eps), plain(layer_norm, x, gamma, beta, eps), np.float64)
    assert_same(fused("layer_norm", x, gamma, beta), plain(layer_norm, x, gamma, beta), np.float64)


@pytest.mark.parametrize("rows", [1, 12, 13, 35])
def test_chunks_grow_where_there_are_more_rows_than_the_chunks_can_take(device, monkeypatch, rows):
    monkeypatch.setitem(kernels.layer_norm.__globals__, "MOST_CHUNKS", 3)
    monkeypatch.setitem(kernels.layer_norm.__globals__, "FEWEST_ROWS", 4)
    x, gamma, beta, dy = _arrays((rows, 40), np.float64)
    _, cache = plain(layer_norm, x, gamma, beta)
    assert_same(fused("layer_norm_backward", dy, cache), plain(layer_norm_backward, dy, cache), np.float64)


def test_layer_norm_of_arrays_that_are_not_contiguous(device):
    x, _, _, dy = (array.T for array in _arrays((6, 35), np.float64))
    vectors = random_host_array(np.random.default_rng(1), 6, 2).T
    expected = plain(layer_norm, x, *vectors)
    assert_same(fused("layer_norm", x, *vectors), expected, np.float64)
    got = fused("layer_norm_backward", dy, expected[1])
    assert_same(got, plain(layer_norm_backward, dy, expected[1]), np.float64)

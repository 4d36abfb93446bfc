"""The kernels that treat every number alike, dropout, ReLU and Adam, give what the plain formulas give."""

from unittest import mock

import numpy as np
import pytest

from minitransformer.backend import to_device, to_host, use_backend, xp
from minitransformer.functional import dropout, dropout_backward, relu, relu_backward
from minitransformer.functional.dropout import DropoutCache, random_uint16
from minitransformer.kernels import launch
from minitransformer.system.generators import make_generator
from minitransformer.training.optimizers import adam_update
from tests.helpers import random_host_array
from tests.kernels.comparing import DTYPES, TOLERANCE, assert_same, fused, plain, relative_error

pytestmark = pytest.mark.exhaustive  # by default test_model.py runs every kernel once
SHAPES = [(1,), (3, 5, 7), (255,), (256,), (2, 257)]  # a block has 256 threads


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("rate", [0.1, 0.5, 1 - 2**-20])
def test_dropout_forward_and_backward(device, rate, shape, dtype):
    rng = np.random.default_rng(0)
    x, dy = random_host_array(rng, *shape, dtype=dtype), random_host_array(rng, *shape, dtype=dtype)
    bits = to_host(random_uint16(make_generator(5), shape))
    dropped = min(round(rate * 65536), 65535)
    expected_cache = DropoutCache(bits >= dropped, 65536 / (65536 - dropped))
    y, cache = fused("dropout", x, rate, make_generator(5))
    assert_same(cache, expected_cache, dtype)
    assert_same(y, plain(dropout_backward, x, expected_cache), dtype)  # which is the same product
    assert_same(fused("dropout_backward", dy, cache), plain(dropout_backward, dy, cache), dtype)


class SomeBits:
    """A generator whose random bits are known."""

    def __init__(self, bits):
        self.words = to_device(np.array(bits, np.uint16).view(np.uint64))

    def integers(self, low, high, size, dtype, endpoint):
        assert (low, high, size, dtype, endpoint) == (0, 2**64 - 1, len(self.words), xp.uint64, True)
        return self.words


def test_dropout_drops_just_the_share_of_all_random_numbers_that_it_should(device):
    _, cache = fused("dropout", np.ones(8), 1000 / 65536, SomeBits([0, 999, 1000, 1001, 65535, 500, 999, 1000]))
    assert cache.keep.tolist() == [False, False, True, True, True, False, False, True]


def test_dropout_that_is_left_to_the_plain_formula_draws_once(device):
    rng = make_generator(3)
    dropout(to_device(np.ones(7, np.complex128)), 0.5, rng)
    expected = make_generator(3)
    random_uint16(expected, (7,))
    got, expected = (to_host(random_uint16(one, (50,))) for one in (rng, expected))
    np.testing.assert_array_equal(got, expected)


def test_dropout_of_arrays_that_are_not_contiguous(device):
    x, dy = random_host_array(np.random.default_rng(2), 2, 6, 5).transpose(0, 2, 1)
    y, cache = fused("dropout", x, 0.5, make_generator(0))
    assert_same(y, plain(dropout_backward, x, cache), np.float64)
    assert_same(fused("dropout_backward", dy, cache), plain(dropout_backward, dy, cache), np.float64)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_relu_backward(device, shape, dtype):
    rng = np.random.default_rng(0)
    x, dy = random_host_array(rng, *shape, dtype=dtype).copy(), random_host_array(rng, *shape, dtype=dtype)
    x[..., :1] = 0  # the kink
    y, _ = plain(relu, x)
    assert_same(fused("relu_backward", dy, y.astype(dtype)), plain(relu_backward, dy, y), dtype)


def test_relu_backward_of_other_arrays(device):
    dy, y = random_host_array(np.random.default_rng(1), 2, 6, 5).transpose(0, 2, 1)
    assert_same(fused("relu_backward", dy, y), plain(relu_backward, dy, y), np.float64)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("scale", [1.0, 0.3, np.array(0.3)], ids=repr)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_adam_takes_the_same_steps(device, shape, scale, dtype):
    rng = np.random.default_rng(0)
    start = random_host_array(rng, *shape, dtype=dtype)
    reference = [array.astype(np.float64) for array in (start, np.zeros_like(start), np.zeros_like(start))]
    arrays = [to_device(array) for array in (start.copy(), np.zeros_like(start), np.zeros_like(start))]
    for t in range(1, 4):
        gradient, numbers = random_host_array(rng, *shape, dtype=dtype), (0.1 / t, (0.8, 0.95), 1e-3, t)
        with use_backend("numpy"):
            adam_update(reference[0], gradient.astype(np.float64), *reference[1:], *numbers, scale=float(scale))
        on_device = to_device(scale.astype(dtype)) if isinstance(scale, np.ndarray) else scale
        with mock.patch.object(launch, "_kernel", wraps=launch._kernel) as find_kernel:
            adam_update(arrays[0], to_device(gradient), *arrays[1:], *numbers, scale=on_device)
        assert find_kernel.call_count == 1, "one launch, however long the arrays are"
    for got, expected in zip(arrays, reference, strict=True):
        assert got.dtype == dtype
        assert relative_error(to_host(got), expected) <= TOLERANCE[np.dtype(dtype)]


def test_adam_takes_a_gradient_that_is_not_contiguous(device):
    gradient = random_host_array(np.random.default_rng(1), 4, 3).T
    got, expected = ([to_device(np.zeros((3, 4))) for _ in range(3)] for _ in range(2))
    adam_update(got[0], to_device(gradient), *got[1:], 0.1, (0.9, 0.98), 1e-3, 1)
    adam_update(expected[0], to_device(gradient.copy()), *expected[1:], 0.1, (0.9, 0.98), 1e-3, 1)
    for one, other in zip(got, expected, strict=True):
        np.testing.assert_array_equal(to_host(one), to_host(other))

"""The cross-entropy kernels give what the plain formulas give, smoothed and padded, for a vocabulary of any size."""

import math

import numpy as np
import pytest

from minitransformer import kernels
from minitransformer.backend import to_device, to_host, xp
from minitransformer.functional import cross_entropy, cross_entropy_backward
from tests.helpers import random_host_array
from tests.kernels.comparing import DTYPES, assert_same, fused, plain

pytestmark = pytest.mark.exhaustive  # by default test_model.py runs every kernel once
# fewer words than a warp has lanes, and more; the longest row of a warp, and one more; a real vocabulary; rows that
# end in the middle of a block; more tokens than the block that counts them has threads
SHAPES = [(2, 3, 2), (3, 5, 33), (1, 2, 1024), (2, 1, 1025), (1, 3, 8000), (9, 13), (7, 100, 3)]


def _problem(shape, dtype, seed=0):
    """Logits, and targets of which about a third is padding, 0."""
    rng = np.random.default_rng(seed)
    logits = random_host_array(rng, *shape, dtype=dtype)
    targets = rng.integers(1, shape[-1], shape[:-1]) * (rng.random(shape[:-1]) < 0.67)
    targets.flat[0] = shape[-1] - 1
    return logits, targets


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_cross_entropy_forward_and_backward(device, shape, smoothing, dtype):
    logits, targets = _problem(shape, dtype)
    expected_loss, expected_cache = plain(cross_entropy, logits, targets, smoothing)
    loss, cache = fused("cross_entropy", logits, targets, smoothing)
    assert loss.shape == ()
    assert_same((loss, cache), (expected_loss, expected_cache), dtype)
    expected_dz = plain(cross_entropy_backward, 1.0, expected_cache)
    assert_same(fused("cross_entropy_backward", 1.0, cache), expected_dz, dtype)  # fused forward, fused backward
    plain_cache = expected_cache._replace(p=expected_cache.p.astype(dtype), share=expected_cache.share.astype(dtype))
    assert_same(fused("cross_entropy_backward", 1.0, plain_cache), expected_dz, dtype)  # plain forward


@pytest.mark.parametrize("dloss", [0.3, np.array(0.7, np.float32)], ids=repr)
@pytest.mark.parametrize("dtype", DTYPES)
def test_gradient_of_a_loss_that_is_a_part_of_something_larger(device, dloss, dtype):
    logits, targets = _problem((3, 5, 33), dtype)
    _, cache = fused("cross_entropy", logits, targets, 0.1)
    expected = plain(cross_entropy_backward, float(dloss), plain(cross_entropy, logits, targets, 0.1)[1])
    assert_same(fused("cross_entropy_backward", dloss, cache), expected, dtype)


@pytest.mark.parametrize("V", [33, 1100])
@pytest.mark.parametrize("overwrite", [False, True])
def test_overwrite_uses_the_array_of_the_logits_throughout_and_else_nothing_does(device, overwrite, V):
    logits, targets = _problem((2, 3, V), np.float64)
    expected_loss, expected_cache = plain(cross_entropy, logits, targets, 0.1)
    on_device = to_device(logits.copy())
    loss, cache = cross_entropy(on_device, to_device(targets), 0.1, overwrite=overwrite)
    assert_same(to_host(loss), expected_loss, np.float64)
    assert bool(xp.shares_memory(cache.p, on_device)) == overwrite
    p = to_host(cache.p).copy()
    assert_same(p, expected_cache.p, np.float64)
    dz = cross_entropy_backward(1.0, cache)
    assert bool(xp.shares_memory(dz, on_device)) == bool(xp.shares_memory(dz, cache.p)) == overwrite
    assert_same(to_host(dz), plain(cross_entropy_backward, 1.0, expected_cache), np.float64)
    if not overwrite:
        np.testing.assert_array_equal(to_host(on_device), logits)
        np.testing.assert_array_equal(to_host(cache.p), p)


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_batch_of_nothing_but_padding_has_loss_and_gradient_zero(device, smoothing):
    logits, _ = _problem((2, 3, 5), np.float32)
    loss, cache = fused("cross_entropy", logits, np.zeros((2, 3), np.int64), smoothing)
    assert loss == 0
    assert not fused("cross_entropy_backward", 1.0, cache).any()


@pytest.mark.parametrize("pad", [-1, 2, 99])
def test_padding_may_be_any_number_also_outside_the_vocabulary(device, pad):
    logits, targets = _problem((4, 6, 7), np.float64)
    targets[targets == 0] = pad
    expected_loss, expected_cache = plain(cross_entropy, logits, targets, 0.1, pad)
    loss, cache = fused("cross_entropy", logits, targets, 0.1, pad)
    assert_same(loss, expected_loss, np.float64)
    expected_dz = plain(cross_entropy_backward, 1.0, expected_cache)
    assert_same(fused("cross_entropy_backward", 1.0, cache), expected_dz, np.float64)


@pytest.mark.parametrize("dtype", [np.int32, np.uint16])
def test_targets_of_other_integers_stay_what_they_are_in_the_cache(device, dtype):
    logits, targets = _problem((3, 5, 33), np.float64)
    targets = targets.astype(dtype)
    expected = plain(cross_entropy, logits, targets, 0.1)
    got = fused("cross_entropy", logits, targets, 0.1)
    assert_same(got, expected, np.float64)
    expected_dz = plain(cross_entropy_backward, 1.0, expected[1])
    assert_same(fused("cross_entropy_backward", 1.0, got[1]), expected_dz, np.float64)


def test_forbidden_words_with_logit_minus_infinity_cost_nothing_without_smoothing(device):
    logits, targets = _problem((3, 5, 33), np.float64)
    logits = logits.copy()
    logits[..., 4] = -np.inf
    targets[targets == 4] = 5
    assert_same(fused("cross_entropy", logits, targets), plain(cross_entropy, logits, targets), np.float64)


def test_cross_entropy_of_arrays_that_are_not_contiguous(device):
    logits, targets = _problem((5, 6, 7), np.float64)
    logits, targets = logits.swapaxes(0, 1), targets.T
    expected = plain(cross_entropy, logits, targets, 0.1)
    assert_same(fused("cross_entropy", logits, targets, 0.1), expected, np.float64)
    turned = to_device(np.ones((7, 30))).T
    assert kernels.cross_entropy(turned, to_device(targets.ravel()), 0.1, 0, True) is NotImplemented


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("lead", [12.0, 60.0])
def test_the_loss_of_a_nearly_sure_word_has_all_its_digits(device, lead, dtype):
    logits = np.zeros((1, 1025), dtype)
    logits[0, 3] = lead
    loss, _ = fused("cross_entropy", logits, np.array([3]))
    assert math.isclose(loss, math.log1p(1024 * math.exp(-lead)), rel_tol=10 * np.finfo(dtype).eps)

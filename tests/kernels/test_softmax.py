"""The softmax kernels give what the plain formulas give, for rows of all lengths and masks of all forms."""

import numpy as np
import pytest

from minitransformer import kernels
from minitransformer.backend import to_device, to_host
from minitransformer.functional import causal_mask, padding_mask, softmax, softmax_backward
from tests.helpers import random_host_array
from tests.kernels.comparing import DTYPES, assert_same, fused, plain

pytestmark = pytest.mark.exhaustive  # by default test_model.py runs every kernel once
# 1-D; shorter than a warp; one number; one more than a warp; the longest row of a warp, and one more; a vocabulary; 5-D
SHAPES = [(7,), (2, 3, 5, 6), (11, 1), (2, 9, 33), (3, 1024), (2, 1025), (2, 8000), (2, 3, 2, 3, 5)]
B, H, T, S = 2, 3, 5, 35


def _masks():
    rng = np.random.default_rng(1)
    source = rng.integers(1, 9, (B, S))
    source[0, 30:], source[1] = 0, 0  # padding at the end of one sentence, and the other nothing but padding
    target = rng.integers(1, 9, (B, T))
    target[1, 3:] = 0
    some = rng.random((B, H, T, S)) < 0.6
    some[1, 2, 3], some[0, 0, 0] = False, True
    wide = np.zeros((S, T), bool)
    wide[::3, 1:] = True
    return {
        "padding (B, 1, 1, S)": padding_mask(source),
        "padding of the queries (B, 1, T, 1)": padding_mask(target).swapaxes(-1, -2),
        "causal (1, 1, T, S)": causal_mask(S)[:, :, :T],
        "padding and causal (B, 1, T, S)": padding_mask(source) & causal_mask(S)[:, :, :T],
        "every entry its own (B, H, T, S)": some,
        "for each head (H, 1, 1)": np.array([True, False, True])[:, None, None],
        "one row for all (S,)": some[1, 1, 1],
        "(T, S), transposed in memory": wide.T,
        "backwards in memory": some[:, :, ::-1, ::-1],
        "nothing": np.zeros((1, 1, 1, 1), bool),
        "everything": np.ones((), bool),
    }


MASKS = _masks()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_softmax_of_rows_of_any_length(device, shape, dtype):
    rng = np.random.default_rng(0)
    scores, dp = random_host_array(rng, *shape, dtype=dtype), random_host_array(rng, *shape, dtype=dtype)
    expected = plain(softmax, scores)
    got = fused("softmax", scores)
    assert_same(got, expected, dtype)
    assert_same(fused("softmax_backward", dp, got[1]), plain(softmax_backward, dp, got[1]), dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("allowed", MASKS.values(), ids=MASKS)
def test_masked_softmax(device, allowed, dtype):
    rng = np.random.default_rng(2)
    scores, dp = (random_host_array(rng, B, H, T, S, dtype=dtype) for _ in range(2))
    expected, _ = plain(softmax, scores, allowed)
    got, cache = fused("softmax", scores, allowed)
    assert_same(got, expected, dtype)
    np.testing.assert_array_equal(got == 0, expected == 0)  # exactly, in the empty rows as well
    expected_ds = plain(softmax_backward, dp, expected)
    assert_same(fused("softmax_backward", dp, cache), expected_ds, dtype)  # fused forward, fused backward
    assert_same(fused("softmax_backward", dp, expected.astype(dtype)), expected_ds, dtype)  # plain forward


@pytest.mark.parametrize("shape", [(4, 3, 5), (2, 1025), (2, 3, 2, 3, 5), (6,)], ids=str)
def test_mask_of_scores_that_are_not_four_dimensional(device, shape):
    rng = np.random.default_rng(3)
    scores = random_host_array(rng, *shape)
    for form in (shape, shape[1:], (*shape[:-1], 1), (1, *shape[1:])):
        allowed = rng.random(form) < 0.5
        assert_same(fused("softmax", scores, allowed), plain(softmax, scores, allowed), np.float64)


def test_softmax_does_not_look_at_scores_that_are_not_allowed(device):
    scores = np.random.default_rng(4).standard_normal((3, 40))
    allowed = np.arange(40) % 3 > 0
    expected = plain(softmax, scores, allowed)
    scores[:, ~allowed] = np.array([np.nan, np.inf, 1e300])[:, None]
    assert_same(fused("softmax", scores, allowed), expected, np.float64)


@pytest.mark.parametrize("S", [7, 40, 1025, 3000])
def test_softmax_of_rows_that_are_negative_throughout_finds_their_largest(device, S):
    """Also in long rows, whose warps are combined: there are fewer of them than a warp has lanes."""
    scores = random_host_array(np.random.default_rng(9), 3, S) - 1e4
    allowed = np.arange(S) % 5 > 0
    assert_same(fused("softmax", scores), plain(softmax, scores), np.float64)
    assert_same(fused("softmax", scores, allowed), plain(softmax, scores, allowed), np.float64)


@pytest.mark.parametrize("allowed", [None, MASKS["padding (B, 1, 1, S)"]], ids=["no mask", "mask"])
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_scores_that_are_no_numbers_show_as_in_the_plain_formula(device, allowed, bad):
    scores = np.random.default_rng(6).standard_normal((B, H, T, S))
    scores[0, 0, 1, 3] = scores[0, 1, 2] = bad
    with np.errstate(all="ignore"):
        expected, _ = plain(softmax, scores, allowed)
    np.testing.assert_allclose(fused("softmax", scores, allowed)[0], expected, rtol=1e-13)


@pytest.mark.parametrize("S", [40, 1500])
def test_softmax_overwrites_the_scores_if_asked(device, S):
    scores = np.random.default_rng(7).standard_normal((5, S))
    expected, _ = plain(softmax, scores)
    on_device = to_device(scores)
    p, cache = softmax(on_device, overwrite=True)
    assert p is cache is on_device
    assert_same(to_host(p), expected, np.float64)


def test_softmax_of_arrays_that_are_not_contiguous(device):
    rng = np.random.default_rng(8)
    scores, dp = (random_host_array(rng, 6, 5, 4).transpose(2, 0, 1) for _ in range(2))
    expected = plain(softmax, scores)
    assert_same(fused("softmax", scores), expected, np.float64)
    assert_same(fused("softmax_backward", dp, expected[1]), plain(softmax_backward, dp, expected[1]), np.float64)
    turned = to_device(np.ones((6, 5, 4))).transpose(2, 0, 1)
    assert kernels.softmax(turned, None, True) is NotImplemented  # which the plain formula can

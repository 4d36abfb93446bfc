"""softmax turns each row of scores into weights that sum to 1, and a mask takes entries out as if they were absent."""

import importlib
import math

import numpy as np
import pytest

from minitransformer.backend import use_backend
from minitransformer.functional import (
    reductions,
    scaled_dot_product_attention,
    scaled_dot_product_attention_backward,
    softmax,
    softmax_backward,
    tiled_attention,
    tiled_attention_backward,
)
from minitransformer.functional.softmax import drop_negligible
from tests.helpers import device, host, random_array, relative_error, same
from tests.strict.strict import strict

B, T, S = 2, 4, 5
ATTENTION_BACKWARD = {
    scaled_dot_product_attention: scaled_dot_product_attention_backward,
    tiled_attention: tiled_attention_backward,
}
EMPTY = (1, 2)  # the row of the example's mask that may attend to nothing


def example(dtype=np.float64):
    """Scores, a mask with all kinds of rows (full, partial, single and empty), and dp, all (B, T, S)."""
    rng = np.random.default_rng(2)
    allowed = rng.random((B, T, S)) < 0.6
    allowed[0, 0] = True
    allowed[0, 1] = np.arange(S) == 3
    allowed[EMPTY] = False
    return random_array(rng, B, T, S, dtype=dtype), device(allowed), random_array(rng, B, T, S, dtype=dtype)


def test_each_row_of_the_score_gradient_sums_to_zero_and_nothing_reaches_what_is_not_allowed():
    scores, allowed, dp = example()
    _, cache = softmax(scores, allowed)
    ds = host(softmax_backward(dp, cache))
    assert np.abs(ds.sum(axis=-1)).max() <= 1e-14 * np.abs(ds).max()
    assert (ds[~host(allowed)] == 0).all()


@pytest.mark.parametrize("size", [1e9, 1e300, np.inf, np.nan])
def test_a_disallowed_score_leaves_no_trace_however_large(size):
    scores = device(np.array([[size, 1.0, -0.5, size]]))
    p, _ = softmax(scores, device(np.array([[False, True, True, False]])))
    alone, _ = softmax(scores[:, 1:3])
    assert (host(p)[0, [0, 3]] == 0).all()
    assert relative_error(p[:, 1:3], alone) <= 1e-14


@pytest.mark.host_only
@pytest.mark.parametrize("attend", [scaled_dot_product_attention, tiled_attention])
def test_attention_with_sharp_weights_computes_no_subnormal_numbers(attend):
    rng = np.random.default_rng(3)
    q, k = (25.0 * random_array(rng, 2, 3, length, 8, dtype=np.float32) for length in (7, 9))
    v, dy = (random_array(rng, 2, 3, length, 8, dtype=np.float32) for length in (9, 7))
    y, cache = attend(q, k, v)
    gradients = ATTENTION_BACKWARD[attend](dy, cache)[:3]
    tiny = np.finfo(np.float32).tiny
    for array in (y, *gradients):
        sizes = np.abs(host(array))
        assert not ((sizes > 0) & (sizes < tiny)).any()


@pytest.mark.host_only
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_smallest_weight_that_is_kept_is_the_root_of_the_smallest_normal_number(dtype):
    edge = np.array(math.log(float(np.finfo(dtype).tiny)) / 2, dtype)
    below = np.nextafter(edge, np.array(-math.inf, dtype))
    scores = np.array([0.0, edge, below, -1.0], dtype)
    drop_negligible(scores)
    assert scores.tolist() == [0.0, edge, -math.inf, -1.0]


@pytest.mark.host_only
def test_small_weights_are_kept_on_a_device_for_which_they_are_not_slow():
    scores = np.array([0.0, -50.0, -1.0], np.float32)
    with use_backend(strict):
        drop_negligible(scores)
    assert scores.tolist() == [0.0, -50.0, -1.0]


def test_softmax_with_overwrite_writes_into_the_array_of_the_scores():
    scores, allowed, _ = example()
    own = scores.copy()
    assert softmax(own, allowed, overwrite=True)[0] is own
    assert same(own, softmax(scores, allowed)[0])


@pytest.mark.parametrize("rows", [1, 3, T, 2 * T])
def test_weights_are_the_same_in_blocks_of_any_size(monkeypatch, rows):
    _, allowed, _ = example()
    scores = random_array(np.random.default_rng(4), 3, B, T, S)  # one mask for three
    whole = [softmax(scores, mask)[0] for mask in (None, allowed, allowed[:, :, :1])]
    # the package's attribute of this name is the function
    monkeypatch.setattr(importlib.import_module("minitransformer.functional.softmax"), "MANY", 0)
    monkeypatch.setattr(reductions, "BLOCK", rows * S)
    for mask, p in zip((None, allowed, allowed[:, :, :1]), whole, strict=True):
        assert relative_error(softmax(scores, mask)[0], p) <= 1e-14


@pytest.mark.parametrize("mask", [None, np.array([True, True, False])])
def test_a_row_of_scores_that_have_all_overflowed_is_nan_and_does_not_look_like_an_empty_one(mask):
    scores = np.full((1, 3), -np.inf)
    scores[0, 2] = 5.0 if mask is not None else -np.inf
    with np.errstate(invalid="ignore"):
        p = host(softmax(device(scores), mask if mask is None else device(mask))[0])
    assert np.isnan(p[0, :2]).all()

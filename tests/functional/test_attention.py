"""Scaled dot-product attention equals equation 1 of the paper, and a mask takes keys out as if they were absent."""

import math

import numpy as np
import pytest

from minitransformer.functional import (
    dropout,
    linear_attention,
    scaled_dot_product_attention,
    scaled_dot_product_attention_backward,
    tiled_attention,
)
from minitransformer.system.generators import make_generator
from tests.functional.test_softmax import naive_softmax
from tests.helpers import derivatives, device, host, random_array, relative_error, same

B, H, T, S, D = 2, 3, 4, 5, 6
EMPTY = (1, slice(None), 2)  # this query, in every head, may attend to nothing
UNSEEN = (0, slice(None), 3)  # this key is seen by no query, in any head
every_kind = pytest.mark.parametrize("attention", [scaled_dot_product_attention, tiled_attention, linear_attention])


def naive_attention(q, k, v, allowed, keep):
    """softmax(q k^T / sqrt(d)) v for one head: q (T, D), k and v (S, D), allowed and keep (T, S)."""
    y = np.zeros((len(q), v.shape[1]))
    for t in range(len(q)):
        scores = [sum(q[t, d] * k[i, d] for d in range(len(q[t]))) / math.sqrt(len(q[t])) for i in range(len(k))]
        weights = naive_softmax(scores, allowed[t])
        for i in range(len(k)):
            for d in range(v.shape[1]):
                y[t, d] += weights[i] * keep[t, i] * v[i, d]
    return y


def example(dtype=np.float64):
    """q, k, v and dy, and on the host a mask (B, H, T, S) that differs from head to head."""
    rng = np.random.default_rng(3)
    q, k, v, dy = (random_array(rng, B, H, length, D, dtype=dtype) for length in (T, S, S, T))
    allowed = rng.random((B, H, T, S)) < 0.7
    allowed[EMPTY] = False
    allowed[UNSEEN[0], :, :, UNSEEN[2]] = False
    return q, k, v, dy, allowed


def run(q, k, v, allowed, rate=0.0, bias=None):
    """Attention under a mask of the host or None, with dropout drawn from the same seed at each call."""
    allowed = None if allowed is None else device(allowed)
    return scaled_dot_product_attention(q, k, v, allowed, rate, make_generator(11), bias)


@pytest.mark.parametrize("rate", [0.0, 0.4])
@pytest.mark.parametrize("masked", [False, True])
def test_attention_equals_the_paper_formula_in_loops(masked, rate):
    q, k, v, _, allowed = example()
    reach = allowed if masked else np.full_like(allowed, True)
    keep, _ = dropout(device(np.ones((B, H, T, S))), rate, make_generator(11))
    y, _ = run(q, k, v, allowed if masked else None, rate)
    q, k, v, keep = (host(array) for array in (q, k, v, keep))
    expected = np.array(
        [[naive_attention(q[b, h], k[b, h], v[b, h], reach[b, h], keep[b, h]) for h in range(H)] for b in range(B)]
    )
    assert relative_error(y, expected) <= 1e-12


def test_attention_backward_with_dropout_and_no_mask_equals_complex_step_derivatives():
    q, k, v, dy, _ = example()
    expected = derivatives(lambda q, k, v: run(q, k, v, None, 0.4)[0], dy, q, k, v)
    _, cache = run(q, k, v, None, 0.4)
    *gradients, dbias = scaled_dot_product_attention_backward(dy, cache)
    assert dbias is None
    for got, wanted in zip(gradients, expected, strict=True):
        assert relative_error(got, wanted) <= 1e-12


def test_the_gradient_of_a_bias_is_the_fourth_and_sums_over_the_batch():
    q, k, v, dy, allowed = example()
    bias = random_array(np.random.default_rng(8), H, T, S)
    complex_q = q.astype(np.complex128)  # so that a complex bias can be added to the scores in place
    expected = derivatives(lambda bias: run(complex_q, k, v, allowed, 0.4, bias=bias)[0], dy, bias)
    *_, dbias = scaled_dot_product_attention_backward(dy, run(q, k, v, allowed, 0.4, bias=bias)[1])
    assert relative_error(dbias, expected[0]) <= 1e-12


@pytest.mark.parametrize("rate", [0.0, 0.4])
def test_the_key_gradient_sums_to_zero_over_all_keys(rate):
    q, k, v, dy, allowed = example()
    _, dk, _, _ = scaled_dot_product_attention_backward(dy, run(q, k, v, allowed, rate)[1])
    dk = host(dk)
    assert np.abs(dk.sum(axis=2)).max() <= 1e-14 * np.abs(dk).max()


def test_one_vector_added_to_all_keys_changes_no_output():
    q, k, v, _, allowed = example()
    shifted = k + device(np.linspace(-1.0, 1.0, D))
    assert relative_error(run(q, shifted, v, allowed)[0], run(q, k, v, allowed)[0]) <= 1e-13


def test_attention_ignores_masked_keys_and_values_and_gives_them_no_gradient():
    q, k, v, dy, allowed = example()
    other_k, other_v = k.copy(), v.copy()
    other_k[UNSEEN], other_v[UNSEEN] = 1e9 * q[0, :, 0], 1e9
    y, cache = run(q, k, v, allowed)
    assert same(run(q, other_k, other_v, allowed)[0], y)
    _, dk, dv, _ = scaled_dot_product_attention_backward(dy, cache)
    assert (dk[UNSEEN] == 0).all()
    assert (dv[UNSEEN] == 0).all()


def test_a_query_that_may_attend_to_nothing_gets_zero_and_teaches_nothing():
    q, k, v, dy, allowed = example()
    y, cache = run(q, k, v, allowed)
    only_there = np.zeros(dy.shape)
    only_there[EMPTY] = host(dy)[EMPTY]
    assert (y[EMPTY] == 0).all()
    for gradient in scaled_dot_product_attention_backward(device(only_there), cache)[:3]:
        assert (gradient == 0).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_attention_keeps_the_dtype_and_writes_to_no_input(dtype):
    q, k, v, dy, allowed = example(dtype)  # q, k, v and dy are read-only
    allowed.setflags(write=False)
    y, cache = run(q, k, v, allowed, 0.4)
    first = scaled_dot_product_attention_backward(dy, cache)[:3]
    again = scaled_dot_product_attention_backward(dy, cache)[:3]  # the cache is unchanged
    assert {array.dtype for array in (y, *first)} == {np.dtype(dtype)}
    assert all(same(a, b) for a, b in zip(first, again, strict=True))


def test_without_options_there_is_no_mask_no_dropout_and_no_bias():
    q, k, v, dy, _ = example()
    y, cache = scaled_dot_product_attention(q, k, v)
    expected, _ = run(q, k, v, None, bias=device(np.zeros((H, T, S))))
    assert same(y, expected)
    assert cache.keep is None
    assert scaled_dot_product_attention_backward(dy, cache)[3] is None


def test_another_scale_takes_the_place_of_the_root_of_the_width():
    q, k, v, dy, _ = example()
    expected, expected_cache = scaled_dot_product_attention(0.7 * math.sqrt(D) * q, k, v)
    y, cache = scaled_dot_product_attention(q, k, v, scale=0.7)
    assert relative_error(y, expected) <= 1e-13
    dq, *others, _ = scaled_dot_product_attention_backward(dy, cache)
    expected_dq, *expected_others, _ = scaled_dot_product_attention_backward(dy, expected_cache)
    for got, wanted in zip((dq, *others), (0.7 * math.sqrt(D) * expected_dq, *expected_others), strict=True):
        assert relative_error(got, wanted) <= 1e-13


@every_kind
@pytest.mark.parametrize(
    ("k", "v"),
    [
        ((B, H, S, D + 1), (B, H, S, D)),
        ((B, H, S, D), (B, H, S + 1, D)),
        ((B + 1, H, S, D), (B + 1, H, S, D)),
        ((B, 2, S, D), (B, 2, S, D)),
        ((B, H, S, D), (B, 1, S, D)),
    ],
    ids=["keys of another width", "more values than keys", "more sequences", "2 for 3 heads", "values of one head"],
)
def test_keys_and_values_that_do_not_fit_are_refused(attention, k, v):
    q = device(np.ones((B, H, T, D)))
    with pytest.raises(ValueError, match=r"q, k and v must be of shape \(B, H, T, D\), \(B, G, S, D\) and"):
        attention(q, device(np.ones(k)), device(np.ones(v)))


@every_kind
@pytest.mark.parametrize("place", [0, 1, 2])
def test_arrays_of_integers_or_of_two_precisions_are_refused(attention, place):
    for dtype, message in ((np.int64, "must be an array of floating-point numbers"), (np.float32, "of one dtype")):
        arrays = [device(np.ones((B, H, T, D))) for _ in range(3)]
        arrays[place] = arrays[place].astype(dtype)
        with pytest.raises(TypeError, match=message):
            attention(*arrays)

"""Scaled dot-product attention equals equation 1 of the paper, and a mask takes keys out as if they were absent."""

import numpy as np

from minitransformer.functional import (
    scaled_dot_product_attention,
    scaled_dot_product_attention_backward,
)
from minitransformer.system.generators import make_generator
from tests.helpers import device, host, random_array, relative_error, same

B, H, T, S, D = 2, 3, 4, 5, 6
EMPTY = (1, slice(None), 2)  # this query, in every head, may attend to nothing
UNSEEN = (0, slice(None), 3)  # this key is seen by no query, in any head


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


def test_dropout_zeroes_weights_and_scales_up_the_others():
    q, k, *_ = example()
    one_hot = device(np.broadcast_to(np.eye(S), (B, H, S, S)).copy())  # so that y are the weights themselves
    weights, dropped = (host(run(q, k, one_hot, None, rate)[0]) for rate in (0.0, 0.25))
    kept = dropped != 0
    assert 0.5 < kept.mean() < 0.9
    assert relative_error(dropped[kept], weights[kept] / 0.75) <= 1e-14


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

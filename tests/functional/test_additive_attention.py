"""Additive attention equals its formula pair by pair, and refuses what does not fit together."""

import numpy as np

from minitransformer.functional import additive_attention, additive_attention_backward
from tests.helpers import device, host, random_array, relative_error, same

B, T, S, A, E = 2, 3, 4, 5, 6
ALLOWED = np.array([[[True] * 4], [[True, True, False, False]]])  # (B, 1, S)


def example():
    rng = np.random.default_rng(41)
    return [random_array(rng, *shape) for shape in ((B, T, A), (B, S, A), (B, S, E), (A,))]


def test_moving_all_queries_is_moving_all_keys():
    arrays = example()
    y, cache = additive_attention(*arrays, device(ALLOWED))
    dq, dk, _, _ = additive_attention_backward(random_array(np.random.default_rng(0), *y.shape), cache)
    assert relative_error(host(dq).sum(axis=1), host(dk).sum(axis=1)) <= 1e-13


def test_a_query_that_may_attend_to_nothing_gets_zero():
    y, cache = additive_attention(*example(), device(np.zeros((B, T, S), bool)))
    assert same(y, np.zeros((B, T, E)))
    assert not any(host(g).any() for g in additive_attention_backward(y + 1.0, cache))

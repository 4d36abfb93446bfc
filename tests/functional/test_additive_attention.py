"""Additive attention equals its formula pair by pair, and refuses what does not fit together."""

import math

import numpy as np

from minitransformer.functional import additive_attention, additive_attention_backward
from tests.helpers import device, host, random_array, relative_error, same

B, T, S, A, E = 2, 3, 4, 5, 6
ALLOWED = np.array([[[True] * 4], [[True, True, False, False]]])  # (B, 1, S)


def naive(q, k, v, w, allowed):
    """The output (T, E) of one sequence."""
    outputs = []
    for query in q:
        scores = [sum(w[a] * math.tanh(query[a] + key[a]) for a in range(len(w))) for key in k]
        exps = [math.exp(score) if may else 0.0 for score, may in zip(scores, allowed, strict=True)]
        total = sum(exps)
        outputs.append([sum(exps[i] * v[i][e] for i in range(len(v))) / total for e in range(len(v[0]))])
    return outputs


def example():
    rng = np.random.default_rng(41)
    return [random_array(rng, *shape) for shape in ((B, T, A), (B, S, A), (B, S, E), (A,))]


def test_additive_attention_equals_its_formula_pair_by_pair():
    arrays = example()
    q, k, v, w = (host(array).tolist() for array in arrays)
    y, _ = additive_attention(*arrays, device(ALLOWED))
    expected = [naive(q[b], k[b], v[b], w, ALLOWED[b, 0]) for b in range(B)]
    assert relative_error(y, expected) <= 1e-14


def test_moving_all_queries_is_moving_all_keys():
    arrays = example()
    y, cache = additive_attention(*arrays, device(ALLOWED))
    dq, dk, _, _ = additive_attention_backward(random_array(np.random.default_rng(0), *y.shape), cache)
    assert relative_error(host(dq).sum(axis=1), host(dk).sum(axis=1)) <= 1e-13


def test_a_query_that_may_attend_to_nothing_gets_zero():
    y, cache = additive_attention(*example(), device(np.zeros((B, T, S), bool)))
    assert same(y, np.zeros((B, T, E)))
    assert not any(host(g).any() for g in additive_attention_backward(y + 1.0, cache))

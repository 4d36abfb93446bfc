"""Additive attention equals its formula pair by pair, and refuses what does not fit together."""

import math
import re

import numpy as np
import pytest

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


@pytest.mark.parametrize(
    ("place", "shape", "message"),
    [
        (0, (B, T, A + 1), "k must be of shape (2, 4, 6), got (2, 4, 5)"),
        (1, (B + 1, S, A), "q, k and v must be of shape (B, T, A), (B, S, A) and (B, S, E), got (2, 3, 5) and"),
        (2, (B, S + 1, E), "q, k and v must be of shape (B, T, A), (B, S, A) and (B, S, E), got (2, 3, 5) and"),
        (3, (1,), "w must be of shape (5,), got (1,)"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(place, shape, message):
    arrays = example()
    arrays[place] = device(np.zeros(shape))
    with pytest.raises(ValueError, match=re.escape(message)):
        additive_attention(*arrays)


def test_a_gradient_of_another_shape_is_refused():
    _, cache = additive_attention(*example())
    with pytest.raises(ValueError, match=re.escape("dy must be of shape (2, 3, 6), got (2, 1, 6)")):
        additive_attention_backward(device(np.zeros((B, 1, E))), cache)


@pytest.mark.parametrize("place", [0, 1, 2])
def test_arrays_that_hold_no_floating_point_numbers_are_refused(place):
    arrays = example()
    message = f"{'qkv'[place]} must be an array of floating-point numbers"
    for wrong in (device(np.ones(arrays[place].shape, np.int64)), host(arrays[place]).tolist()):
        arrays[place] = wrong
        with pytest.raises(TypeError, match=message):
            additive_attention(*arrays)

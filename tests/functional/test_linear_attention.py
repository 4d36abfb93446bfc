"""Linear attention: three forms of one function, and features that do not cancel."""

import numpy as np
import pytest

from minitransformer.backend import use_backend
from minitransformer.functional import (
    linear_attention,
    linear_attention_backward,
)
from minitransformer.functional.since_2017 import linear_attention as linear
from tests.helpers import device, host, random_array, relative_error
from tests.strict.strict import strict

B, H, T, S, D = 2, 4, 7, 5, 3


def example(causal, groups=H):
    """q, k, v, dy, and a mask of keys (B, 1, 1, S) that hides every key of the first sequence."""
    rng = np.random.default_rng(2)
    keys = T if causal else S
    shapes = (B, H, T, D), (B, groups, keys, D), (B, groups, keys, D), (B, H, T, D)
    seen = rng.random((B, keys)) < 0.6
    seen[0] = False
    return *(random_array(rng, *shape) for shape in shapes), seen


def test_parallel_recurrent_and_chunked_forms_agree():
    q, k, v, dy, _ = example(True, 2)
    results = []
    for chunk in (T, 1, 3):
        y, cache = linear_attention(q, k, v, None, True, chunk)
        results.append((y, *linear_attention_backward(dy, cache), cache.state))
    for other in results[1:]:
        for expected, got in zip(results[0], other, strict=True):
            assert relative_error(got, expected) <= 1e-12


def test_state_continues_a_sequence_in_pieces():
    q, k, v, _, _ = example(True)
    whole, _ = linear_attention(q, k, v, None, True)
    state, pieces = None, []
    for start, end in ((0, 3), (3, 4), (4, T)):
        y, cache = linear_attention(*(x[:, :, start:end] for x in (q, k, v)), None, True, 2, state)
        state = cache.state
        pieces.append(host(y))
    assert relative_error(np.concatenate(pieces, axis=2), whole) <= 1e-13
    assert state.shape == (B, H, D, D + 1)


def test_equal_values_give_themselves_and_a_query_that_sees_nothing_gives_zero():
    q, k, v, dy, seen = example(False)
    v = device(np.broadcast_to(np.array([1.0, -2.0, 0.5]), v.shape).copy())
    y, cache = linear_attention(q, k, v, device(seen[:, None, None]))
    assert relative_error(y[1:], np.broadcast_to([1.0, -2.0, 0.5], y[1:].shape)) <= 1e-14
    assert not host(y)[0].any()
    assert all(not host(gradient)[0].any() for gradient in linear_attention_backward(dy, cache))


def test_weights_of_the_cache_give_the_output():
    for causal in (False, True):
        q, k, v, _, seen = example(causal, 2)
        for allowed in (None, device(seen[:, None, None])):
            y, cache = linear_attention(q, k, v, allowed, causal)
            assert relative_error(host(cache.weights) @ np.repeat(host(v), 2, axis=1), y) <= 1e-13


@pytest.mark.parametrize(("library", "chunk"), [("numpy", linear.CHUNK), (strict, linear.GPU_CHUNK)])
def test_a_gpu_gets_longer_chunks_by_default(library, chunk):
    with use_backend(library):
        q, k, v = (device(array) for array in np.random.default_rng(2).standard_normal((3, B, H, T, D)))
        _, cache = linear_attention(q, k, v, causal=True)
    assert cache.chunk == chunk
    assert linear.CHUNK < linear.GPU_CHUNK

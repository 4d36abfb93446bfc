"""The embedding's gradient on a GPU adds every row to its id's, however often an id comes, and in a fixed order."""

import numpy as np
import pytest

from minitransformer import kernels
from minitransformer.backend import to_device, to_host, use_backend
from minitransformer.functional import embedding_backward
from minitransformer.functional.embedding import EmbeddingCache
from tests.helpers import random_host_array, relative_error
from tests.kernels.comparing import DTYPES, TOLERANCE

V, B, T = 11, 3, 8
IDS = {
    "some come twice": np.random.default_rng(0).integers(0, V, (B, T)),
    "one id alone": np.full((B, T), 4),
    "no id twice": np.random.default_rng(1).permutation(30)[: B * T].reshape(B, T),
    "first and last row": np.array([[0] * 9 + [V - 1] * 7]),
    "one token": np.array([[V - 1]]),
}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("C", [1, 33, 70])
@pytest.mark.parametrize("ids", IDS.values(), ids=IDS)
def test_gradient_of_the_table(device, ids, C, dtype):
    rng = np.random.default_rng(2)
    dy, before = random_host_array(rng, *ids.shape, C, dtype=dtype), random_host_array(rng, 30, C, dtype=dtype)
    for given, scale in [(ids, 1.0), (ids.astype(np.int32), 1.7)]:
        expected = before.astype(np.float64)
        with use_backend("numpy"):
            embedding_backward(dy.astype(np.float64), EmbeddingCache(given, scale), expected)
        dE = to_device(before.copy())
        assert kernels.embedding_backward(to_device(dy), EmbeddingCache(given, scale), dE) is None
        assert dE.dtype == dtype
        assert relative_error(to_host(dE), expected) <= TOLERANCE[np.dtype(dtype)]
        untouched = ~np.isin(np.arange(30), given)
        np.testing.assert_array_equal(to_host(dE)[untouched], before[untouched])


def test_gradient_that_is_not_contiguous(device):
    ids, dy = IDS["some come twice"], random_host_array(np.random.default_rng(4), T, 7, B).transpose(2, 0, 1)
    expected, dE = np.zeros((V, 7)), to_device(np.zeros((V, 7)))
    with use_backend("numpy"):
        embedding_backward(dy, EmbeddingCache(ids, 1.0), expected)
    kernels.embedding_backward(to_device(dy), EmbeddingCache(ids, 1.0), dE)
    assert relative_error(to_host(dE), expected) <= 1e-13


def test_gradient_has_the_same_bits_in_every_run(device):
    rng = np.random.default_rng(3)
    cache = EmbeddingCache(rng.integers(0, 5, (4, 50)), 1.0)
    dy = to_device(random_host_array(rng, 4, 50, 40, dtype=np.float32))
    results = set()
    for _ in range(3):
        dE = to_device(np.zeros((5, 40), np.float32))
        kernels.embedding_backward(dy, cache, dE)
        results.add(to_host(dE).tobytes())
    assert len(results) == 1


def test_embedding_leaves_other_arrays_to_the_plain_formula(device):
    cache = EmbeddingCache(np.array([[0, 1, 1]]), 1.0)
    dy, dE = to_device(np.ones((1, 3, 4))), to_device(np.zeros((5, 4)))
    assert kernels.embedding_backward(dy, cache, dE.astype(np.float32)) is NotImplemented
    assert kernels.embedding_backward(dy.astype(np.complex128), cache, dE) is NotImplemented
    assert kernels.embedding_backward(dy, cache, to_device(np.zeros((4, 5))).T) is NotImplemented

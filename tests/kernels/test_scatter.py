"""The sums of rows on a GPU: each id gets all of its rows, however often it occurs, and in a fixed order."""

import numpy as np
import pytest

from minitransformer import kernels
from minitransformer.backend import to_device, to_host, use_backend
from minitransformer.functional import embedding_backward
from minitransformer.functional.embedding import EmbeddingCache
from tests.helpers import random_host_array, relative_error
from tests.kernels.comparing import DTYPES, TOLERANCE

pytestmark = pytest.mark.exhaustive  # by default test_model.py runs every kernel once
V, N = 11, 24
IDS = {
    "some come twice": np.random.default_rng(0).integers(0, V, N),
    "one id alone": np.full(N, 4),
    "no id twice": np.random.default_rng(1).permutation(30)[:N],
    "first and last row": np.array([0] * 9 + [V - 1] * 7),
    "one token": np.array([V - 1]),
}


def naive(table, ids, rows):
    """The sum, one row after the other, in float64."""
    table = table.astype(np.float64)
    for i, row in zip(ids, rows, strict=True):
        table[i] += row
    return table


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("C", [1, 33, 70])
@pytest.mark.parametrize("ids", IDS.values(), ids=IDS)
def test_every_row_is_added_to_its_id(device, ids, C, dtype):
    rng = np.random.default_rng(2)
    rows, before = random_host_array(rng, len(ids), C, dtype=dtype), random_host_array(rng, 30, C, dtype=dtype)
    for given in (ids, ids.astype(np.int32)):
        table = to_device(before.copy())
        assert kernels.scatter_add(table, given, to_device(rows)) is None
        assert table.dtype == dtype
        assert relative_error(to_host(table), naive(before, ids, rows)) <= TOLERANCE[np.dtype(dtype)]
        untouched = ~np.isin(np.arange(30), given)
        np.testing.assert_array_equal(to_host(table)[untouched], before[untouched])


def test_embedding_backward_goes_through_the_kernel_with_its_scale(device):
    ids, dy = (
        IDS["some come twice"].reshape(3, 8),
        random_host_array(np.random.default_rng(4), 8, 7, 3).transpose(2, 0, 1),
    )
    expected, dE = np.zeros((V, 7)), to_device(np.zeros((V, 7)))
    with use_backend("numpy"):
        embedding_backward(dy, EmbeddingCache(ids, 1.7), expected)
    embedding_backward(to_device(dy), EmbeddingCache(ids, 1.7), dE)
    assert relative_error(to_host(dE), expected) <= 1e-13

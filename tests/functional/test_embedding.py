"""embedding looks rows up, and its backward gives a row the gradients of all the places where its token stood."""

import math

import numpy as np
import pytest

from minitransformer.functional import embedding, embedding_backward
from tests.helpers import device, host, random_array, relative_error

B, T, V, C = 2, 4, 11, 5
IDS = np.array([[3, 7, 3, 0], [10, 3, 7, 7]])  # 3 and 7 come several times, the first and last row once
SCALE = math.sqrt(C)


def example(dtype=np.float64):
    """E and dy."""
    rng = np.random.default_rng(12)
    return random_array(rng, V, C, dtype=dtype), random_array(rng, B, T, C, dtype=dtype)


def gradient_of_table(dy, E, ids=IDS, scale=SCALE):
    dE = device(np.zeros(E.shape, E.dtype))
    embedding_backward(dy, embedding(ids, E, scale)[1], dE)
    return dE


@pytest.mark.parametrize(
    "ids",
    [np.full((B, T), 4), np.arange(8).reshape(B, T), IDS.astype(np.uint8)],
    ids=["one token", "all different", "unsigned"],
)
def test_a_token_gets_the_sum_over_all_its_places_and_an_absent_one_nothing(ids):
    E, dy = example()
    dE, dy = host(gradient_of_table(dy, E, ids)), host(dy)
    expected = np.zeros((V, C))
    for b, t, c in np.ndindex(B, T, C):
        expected[ids[b, t], c] += SCALE * dy[b, t, c]
    assert relative_error(dE, expected) <= 1e-12
    assert (dE[np.setdiff1d(np.arange(V), ids)] == 0).all()


def test_embedding_without_a_scale_gives_the_rows_themselves():
    E, _ = example()
    y, cache = embedding(IDS, E)
    assert np.array_equal(host(y), host(E)[IDS])
    assert cache.scale == 1.0


def test_embedding_refuses_ids_outside_the_table_and_gradients_of_another_shape():
    E, dy = example()
    with pytest.raises(IndexError, match=f"ids has the token id {V}"):
        embedding(np.array([[0, V]]), E)
    dE = device(np.zeros((V, C)))
    for wrong in (dy[:, :1], dy[..., :1]):
        with pytest.raises(ValueError, match="dy must be of shape"):
            embedding_backward(wrong, embedding(IDS, E)[1], dE)
    assert not host(dE).any()

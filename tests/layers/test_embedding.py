"""Token ids become scaled rows of E plus positions, vectors become logits by E, and impossible ids are named."""

import math
import tracemalloc

import numpy as np
import pytest

from minitransformer.core import Parameter
from minitransformer.functional import dropout, sinusoidal_positions
from minitransformer.layers import Embedding, InputEmbedding, OutputProjection, PositionalEncoding
from minitransformer.system.generators import make_generator
from tests.helpers import device, host, random_array, relative_error, same

B, T, V, C, MAX_LEN = 2, 4, 11, 6, 9
IDS = np.array([[3, 7, 3, 0], [10, 3, 7, 7]])


def table():
    return Parameter(np.random.default_rng(24).standard_normal((V, C)))


def test_input_embedding_is_dropout_on_the_sum_of_tokens_and_positions():
    E = table()
    layer = InputEmbedding(E, PositionalEncoding(MAX_LEN, C, dtype=np.float64), dropout_rate=0.4)
    keep, _ = dropout(device(np.ones((B, T, C))), 0.4, make_generator(1))
    expected = host(keep) * (math.sqrt(C) * host(E.data)[IDS] + sinusoidal_positions(MAX_LEN, C, np.float64)[:T])
    assert relative_error(layer(IDS, rng=make_generator(1)), expected) <= 1e-12


def test_vectors_and_logits_are_multiplied_by_the_given_scales():
    E, y = table(), random_array(np.random.default_rng(27), B, T, C)
    assert relative_error(Embedding(E, 0.7)(IDS), 0.7 * host(E.data)[IDS]) <= 1e-15
    assert relative_error(InputEmbedding(E, None, 0.0, 0.7)(IDS), 0.7 * host(E.data)[IDS]) <= 1e-15
    assert same(Embedding(E, 1.0)(IDS), host(E.data)[IDS])
    for scale in (0.3, 2.0):
        assert relative_error(OutputProjection(E, scale)(y), scale * (host(y) @ host(E.data).T)) <= 1e-14


@pytest.mark.parametrize("given", ["none", "zero", "not zero"])
def test_the_table_gets_the_sum_of_all_gradients_whatever_was_there(given):
    rng, E = np.random.default_rng(29), table()
    y, dlogits = random_array(rng, B, T, C), random_array(rng, B, T, V)
    before = np.zeros((V, C))
    if given != "none":
        before = rng.standard_normal((V, C))
        E.grad[...] = device(before)
    if given == "zero":
        E.zero_grad()
        before = np.zeros((V, C))
    layer = OutputProjection(E)
    layer.backward(dlogits, layer.forward(y)[1])
    assert relative_error(E.grad, before + host(dlogits).reshape(-1, V).T @ host(y).reshape(-1, C)) <= 1e-14


@pytest.mark.host_only  # what a GPU allocates is not traced
@pytest.mark.parametrize("given", ["zero", "not zero"])
def test_a_gradient_that_has_an_array_needs_no_other_of_its_size(given):
    rng = np.random.default_rng(30)
    E = Parameter(np.ones((2**15, 128), np.float32))
    E.grad[...] = 1.0
    if given == "zero":
        E.zero_grad()
    layer, y = OutputProjection(E), rng.standard_normal((1, 1, 128)).astype(np.float32)
    dlogits = rng.standard_normal((1, 1, 2**15)).astype(np.float32)
    tracemalloc.start()
    layer.backward(dlogits, y)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < E.data.nbytes / 2
    assert relative_error(E.grad, (given != "zero") + dlogits[0].T * y[0]) <= 1e-6


def test_a_wrong_gradient_is_refused_before_anything_has_changed():
    layer = OutputProjection(table())
    _, cache = layer.forward(random_array(np.random.default_rng(31), B, T, C))
    for shape in ((B, T, V + 1), (B, T - 1, V), (T, B, V)):
        with pytest.raises(ValueError, match=r"dlogits must be of shape \(2, 4, 11\)"):
            layer.backward(device(np.ones(shape)), cache)
    assert not host(layer.E.grad).any()

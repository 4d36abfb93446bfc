"""What the trace counts is what was computed: known products, known chains, and who depends on whom."""

import numpy as np
import pytest

from experiments import table1
from experiments.measuring.tracing import Trace
from minitransformer.functional import linear
from minitransformer.layers import GRU, Conv1d, Linear

RNG = np.random.default_rng(0)


def numbers(*shape):
    return RNG.standard_normal(shape)


@pytest.fixture
def trace():
    trace = Trace()
    with trace.recording():
        yield trace


def test_products_are_counted_by_their_weight_even_if_it_was_scaled(trace):
    layer, trace = Linear(4, 6, rng=RNG), Trace()
    with trace.recording(layer):
        x = trace.watch(numbers(2, 3, 4).astype(np.float32))
        layer(x)
        linear(x, layer.W.data * 2.0)
    assert trace.multiply_adds == {"W": 2 * (2 * 3 * 4 * 6)}


@pytest.mark.parametrize("n", [1, 2, 9])
def test_the_chain_of_a_loop_is_as_long_as_the_loop(trace, n):
    h, W = trace.watch(numbers(2, 3)), numbers(3, 3)
    for _ in range(n):
        h = h @ W
    assert trace.longest == n
    assert (trace.chains(h) == n).all()


def test_an_operation_that_is_not_known_is_refused(trace):
    x = trace.watch(numbers(2, 3))
    for unknown in (lambda: np.linalg.norm(x), lambda: np.add.accumulate(x), lambda: np.sort(x) + 1.0):
        with pytest.raises(NotImplementedError, match="the trace does not know"):
            unknown()


@pytest.mark.parametrize("make", [*(kind.make for kind in table1.KINDS.values()), lambda d, _, rng: GRU(d, d, rng=rng)])
def test_the_trace_and_the_gradient_agree_about_who_depends_on_whom(make):
    """An output has a chain from the first input, forward, exactly where its gradient says so, backward."""
    n, d, rng = 70, 16, np.random.default_rng(1)
    layer, x = make(d, 1, rng), rng.standard_normal((1, n, d)).astype(np.float32)
    trace = Trace(shortest=True)
    with trace.recording(layer):
        traced = trace.watch(x.copy())
        trace.starts_from(traced, (0, 0))
        y, _ = forward(layer, traced)
        reached = np.isfinite(trace.chains(y)[0]).any(axis=-1)
    y, cache = forward(layer, x)
    for t in (0, 1, 2, 3, 4, 5, 6, 7, 30, 31, 32, 33, 69):
        dy = np.zeros_like(y)
        dy[0, t] = 1.0
        dx = layer.backward(dy, cache)
        dx = dx[0] if isinstance(dx, tuple) else dx
        if dx[0, 0].any():
            assert reached[t], t
        elif isinstance(layer, Conv1d):
            assert not reached[t], t


def forward(layer, x):
    y, cache = table1.forward(layer, x)
    return (y[0] if isinstance(y, tuple) else y), cache


@pytest.mark.parametrize("n", [24])
def test_layers_have_the_multiply_adds_of_their_formulas(n):
    d, k = 32, table1.KERNEL
    counted = {name: table1.count(name, n, 0, d) for name in table1.KINDS}
    sums = table1.HEADS * n * n if n * n * table1.HEADS > 4096 else 0  # of the softmax; small ones are no product
    assert counted["self-attention"]["without_projections"] == 2 * n * n * d + sums
    assert counted["self-attention"]["multiply_adds"] == 4 * n * d * d + 2 * n * n * d + sums
    assert counted["recurrent"]["multiply_adds"] == 8 * n * d * d
    assert counted["recurrent"]["without_projections"] == 4 * n * d * d
    assert counted["convolutional"]["multiply_adds"] == counted["dilated"]["multiply_adds"] == k * n * d * d


def test_paths_have_the_layers_that_their_reach_asks_for():
    found = {name: table1.path(name, 40, 0) for name in table1.KINDS}
    assert found["self-attention"]["layers"] == found["recurrent"]["layers"] == 1
    assert found["convolutional"]["layers"] == 40 / (table1.KERNEL - 1)
    assert found["dilated"]["layers"] == 4, "3^4 - 1 = 80 is the first reach of at least 40"
    assert found["restricted"]["layers"] == 2, "each reaches 31 tokens back"
    assert (found["recurrent"]["products"], found["self-attention"]["products"]) == (1, 3)
    assert found["convolutional"]["products"] == found["convolutional"]["layers"]

"""Stacks of recurrent layers: what passes between layers and directions, and how they start."""

import numpy as np
import pytest

from minitransformer.functional import gru, lstm
from minitransformer.layers import GRU, LSTM
from tests.helpers import device, host, random_array, randomize, relative_error, same

B, T, I, R, L = 3, 5, 4, 2, 3
both = pytest.mark.parametrize("kind", [LSTM, GRU])
TOKENS = np.arange(T) < np.array([5, 2, 4])[:, None]


def make(kind, **switches):
    """A stack with order-one weights."""
    return randomize(kind(I, R, num_layers=L, dtype=np.float64, **switches))


def read(x):
    return random_array(np.random.default_rng(7), B, T, x)


def function_of(direction):
    """The function of one direction of one layer, with its parameters."""
    weights = [parameter.data for parameter in direction.parameters()]
    return lambda x, mask, reverse: ({4: lstm, 3: gru}[direction.blocks](x, *weights, None, mask, reverse))[0]


@both
def test_each_layer_reads_the_outputs_of_both_directions_of_the_layer_below(kind):
    stack, x = make(kind, bidirectional=True), read(I)
    (y, state), _ = stack.forward(x, mask=device(TOKENS))
    for layer in range(L):
        (ahead, last), (back, first) = (
            function_of(stack.directions[2 * layer + way])(x, device(TOKENS), bool(way)) for way in (0, 1)
        )
        x = device(np.concatenate([host(ahead), host(back)], axis=-1))
        for got, a, b in zip(state, last, first, strict=True):
            assert same(got[layer], np.concatenate([host(a), host(b)], axis=-1))
    assert same(y, x)


def test_the_forget_gate_alone_starts_with_a_bias_and_mostly_open():
    for given, bias in (({"forget_bias": 0.7}, 0.7), ({}, 1.0)):
        for direction in LSTM(I, R, num_layers=2, dtype=np.float64, **given).directions:
            assert host(direction.b.data).tolist() == [0.0] * 4 + [bias] * 2 + [0.0] * 2


@both
@pytest.mark.parametrize("bidirectional", [False, True])
def test_a_stack_starts_from_zeros_and_its_last_state_needs_no_gradient(kind, bidirectional):
    layer = randomize(kind(I, R, num_layers=2, bidirectional=bidirectional, dtype=np.float64))
    x = read(I)
    (y, last), cache = layer.forward(x)
    zeros = tuple(device(np.zeros(host(array).shape)) for array in last)
    (y_from_zeros, _), again = layer.forward(x, zeros, device(np.ones((B, T), bool)))
    assert same(y, y_from_zeros)
    dy = random_array(np.random.default_rng(5), *y.shape)
    dx, dstate = layer.backward(dy, cache)
    dx_from_zeros, dstate_from_zeros = layer.backward(dy, again, zeros)
    assert relative_error(dx, dx_from_zeros) <= 1e-14
    for a, b in zip(dstate, dstate_from_zeros, strict=True):
        assert relative_error(a, b) <= 1e-14

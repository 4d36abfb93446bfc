"""LSTM and GRU equal their formulas step by step, skip padding, and refuse arrays that do not fit together."""

import math

import numpy as np
import pytest

from minitransformer.functional import gru, gru_backward, lstm, lstm_backward
from tests.helpers import device, host, random_array, relative_error, same

B, T, I, R = 3, 5, 4, 2
LENGTHS = (5, 2, 1)
FUNCTIONS = {"lstm": (lstm, lstm_backward), "gru": (gru, gru_backward)}
BLOCKS = {"lstm": 4, "gru": 3}
both = pytest.mark.parametrize("name", FUNCTIONS)


def sigmoid(x):
    return 1.0 / (1.0 + math.exp(-x))


def affine(x, W, b, column):
    """(x W + b) of one column, for one token x."""
    return sum(x[i] * W[i][column] for i in range(len(x))) + b[column]


def naive_lstm(x, W, U, b, h, c):
    """The outputs and the final (h, c) of one sequence x (T, I)."""
    outputs, R, zero = [], len(h), [0.0] * len(b)
    for token in x:
        a = [affine(token, W, b, j) + affine(h, U, zero, j) for j in range(4 * R)]
        c = [sigmoid(a[2 * R + j]) * c[j] + sigmoid(a[R + j]) * math.tanh(a[3 * R + j]) for j in range(R)]
        h = [sigmoid(a[j]) * math.tanh(c[j]) for j in range(R)]
        outputs.append(h)
    return outputs, (h, c)


def naive_gru(x, W, U, b, d, h):
    """The outputs and the final (h,) of one sequence x (T, I)."""
    outputs, R, zero = [], len(h), [0.0] * len(b)
    for token in x:
        new = []
        for j in range(R):
            r = sigmoid(affine(token, W, b, j) + affine(h, U, zero, j))
            z = sigmoid(affine(token, W, b, R + j) + affine(h, U, zero, R + j))
            n = math.tanh(affine(token, W, b, 2 * R + j) + r * (affine(h, U, zero, 2 * R + j) + d[j]))
            new.append(z * h[j] + (1 - z) * n)
        h = new
        outputs.append(h)
    return outputs, (h,)


def example(name, dtype=np.float64):
    """x, the weights, the initial state, dy and the gradient of the final state."""
    rng, width = np.random.default_rng(31), BLOCKS[name] * R
    shapes = [(I, width), (R, width), (width,), *([(R,)] if name == "gru" else [])]
    x, dy = (random_array(rng, B, T, n, dtype=dtype) for n in (I, R))
    weights = [random_array(rng, *shape, dtype=dtype) for shape in shapes]
    state, dstate = (tuple(random_array(rng, B, R, dtype=dtype) for _ in range(BLOCKS[name] - 2)) for _ in range(2))
    return x, weights, state, dy, dstate


def tokens():
    """The mask of sequences of LENGTHS tokens, (B, T)."""
    return device(np.arange(T) < np.array(LENGTHS)[:, None])


@both
@pytest.mark.parametrize("reverse", [False, True])
def test_a_batch_equals_the_formula_applied_to_its_tokens_one_by_one(name, reverse):
    """Padding is no token: the formula never sees it."""
    x, weights, state, _, _ = example(name)
    (y, final), _ = FUNCTIONS[name][0](x, *weights, state, tokens(), reverse)
    naive = {"lstm": naive_lstm, "gru": naive_gru}[name]
    for row, length in enumerate(LENGTHS):
        order = slice(None, None, -1 if reverse else 1)
        read = host(x)[row, :length][order].tolist()
        outputs, last = naive(read, *(host(w).tolist() for w in weights), *(host(s)[row].tolist() for s in state))
        assert relative_error(host(y)[row, :length], outputs[order]) <= 1e-14
        assert not host(y)[row, length:].any()
        for got, expected in zip(final, last, strict=True):
            assert relative_error(host(got)[row], expected) <= 1e-14


@both
@pytest.mark.parametrize("reverse", [False, True])
def test_what_is_in_the_padding_changes_nothing_and_gets_no_gradient(name, reverse):
    x, weights, state, dy, dstate = example(name)
    forward, backward = FUNCTIONS[name]
    other = host(x).copy()
    other[~host(tokens())] = 1e3
    results = []
    for inputs in (x, device(other)):
        (y, final), cache = forward(inputs, *weights, state, tokens(), reverse)
        *gradients, dinitial = backward(dy, cache, dstate)
        assert not host(gradients[0])[~host(tokens())].any()
        results.append([y, *final, *gradients, *dinitial])
    assert all(same(a, b) for a, b in zip(*results, strict=True))


def test_an_open_forget_gate_and_a_closed_input_gate_keep_the_memory_and_its_gradient():
    """The constant error carousel of 1997: with f = 1, dc passes through any number of steps as it is."""
    _, (W, U, _), state, _, dstate = example("lstm")
    closed = np.repeat([-np.inf, -np.inf, np.inf, 0.0], R)
    x = device(np.zeros((B, 100, I)))
    (_, (_, c)), cache = lstm(x, W * 0.0, U * 0.0, device(closed), state)
    *_, (_, dc) = lstm_backward(device(np.zeros((B, 100, R))), cache, dstate)
    assert same(c, state[1])
    assert same(dc, dstate[1])

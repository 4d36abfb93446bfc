"""LSTM and GRU equal their formulas step by step, skip padding, and refuse arrays that do not fit together."""

import numpy as np
import pytest

from minitransformer.functional import gru, gru_backward, lstm, lstm_backward
from tests.helpers import device, host, random_array, same

B, T, I, R = 3, 5, 4, 2
LENGTHS = (5, 2, 1)
FUNCTIONS = {"lstm": (lstm, lstm_backward), "gru": (gru, gru_backward)}
BLOCKS = {"lstm": 4, "gru": 3}
both = pytest.mark.parametrize("name", FUNCTIONS)


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


@both
def test_in_reverse_the_last_token_is_read_first(name):
    x, weights, state, _, _ = example(name)
    forward, _ = FUNCTIONS[name]
    (y, final), _ = forward(x, *weights, state, None, True)
    (expected, last), _ = forward(device(host(x)[:, ::-1].copy()), *weights, state)
    assert same(y, host(expected)[:, ::-1])
    assert all(same(a, b) for a, b in zip(final, last, strict=True))


def test_an_open_forget_gate_and_a_closed_input_gate_keep_the_memory_and_its_gradient():
    """The constant error carousel of 1997: with f = 1, dc passes through any number of steps as it is."""
    _, (W, U, _), state, _, dstate = example("lstm")
    closed = np.repeat([-np.inf, -np.inf, np.inf, 0.0], R)
    x = device(np.zeros((B, 100, I)))
    (_, (_, c)), cache = lstm(x, W * 0.0, U * 0.0, device(closed), state)
    *_, (_, dc) = lstm_backward(device(np.zeros((B, 100, R))), cache, dstate)
    assert same(c, state[1])
    assert same(dc, dstate[1])

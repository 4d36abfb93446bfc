"""The cases of functions in which tokens meet: attention and recurrent networks."""

import numpy as np
import sympy

from minitransformer import functional as F
from minitransformer.functional.since_2017.patterns import Pattern
from tests.algebra import symbols
from tests.algebra.pairs import Case, Signed

SCALE = sympy.Symbol("scale", positive=True)
MASK = np.array([[True, False, True], [False, False, False]])  # the second query may attend to nothing
KEYS = symbols.wrap(MASK[:1, None, None])
TOKENS = np.array([[True, True], [False, True]])
GROUPED = {"q": (1, 2, 2, 2), "k": (1, 1, 3, 2), "v": (1, 1, 3, 2)}
NARROW = {"q": (1, 2, 2, 1), "k": (1, 1, 3, 1), "v": (1, 1, 3, 2)}
SEQUENCE = {"q": (1, 2, 3, 1), "k": (1, 1, 3, 1), "v": (1, 1, 3, 2)}
FEATURES = {name: Signed(shape) if name in "qk" else shape for name, shape in SEQUENCE.items()}
# two steps each: one sequence with two inputs, or two sequences with one
LSTM = {"x": (1, 2, 2), "W": (2, 4), "U": (1, 4), "b": (4,), "h": (1, 1), "c": (1, 1)}
GRU = {"x": (1, 2, 2), "W": (2, 3), "U": (1, 3), "b": (3,), "d": (1,), "h": (1, 1)}
LSTM_BATCH = {"x": (2, 2, 1), "W": (1, 4), "U": (1, 4), "b": (4,), "h": (2, 1), "c": (2, 1)}
GRU_BATCH = {"x": (2, 2, 1), "W": (1, 3), "U": (1, 3), "b": (3,), "d": (1,), "h": (2, 1)}


def rng():
    """A generator whose masks keep some weights and drop others."""
    return np.random.default_rng(3)


def tiled(**options):
    """Tiled attention in tiles of 2 x 2."""
    return lambda q, k, v, bias=None: F.tiled_attention(q, k, v, bias=bias, tile=(2, 2), **options)


def first_three(function):
    """`function` without the last of four gradients, which is None."""
    return lambda dy, cache: function(dy, cache)[:3]


def recurrent(function, **options):
    """(x, W, U, ..., *state) -> ((y, *state), cache), for an LSTM or a GRU."""
    states = 2 if function is F.lstm else 1

    def forward(*inputs):
        (y, state), cache = function(*inputs[:-states], inputs[-states:], **options)
        return (y, *state), cache

    return forward


def recurrent_backward(function):
    """The gradients of all inputs from (dy, *dstate)."""

    def backward(dy, cache):
        *gradients, dstate = function(dy[0], cache, dy[1:])
        return (*gradients, *dstate)

    return backward


CASES = (
    Case(
        "scaled_dot_product_attention",
        "with a bias, grouped keys and any scale",
        lambda q, k, v, bias: F.scaled_dot_product_attention(q, k, v, bias=bias, scale=SCALE),
        F.scaled_dot_product_attention_backward,
        {**GROUPED, "bias": (2, 2, 3)},
    ),
    Case(
        "scaled_dot_product_attention",
        "with dropout, a mask and a query that may attend to nothing",
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v, MASK, dropout_rate=0.4, rng=rng()),
        first_three(F.scaled_dot_product_attention_backward),
        GROUPED,
    ),
    Case(
        "tiled_attention",
        "with a bias, grouped keys and any scale",
        lambda *inputs: tiled(scale=SCALE)(*inputs),
        F.tiled_attention_backward,
        {**NARROW, "bias": (2, 2, 3)},
    ),
    Case(
        "tiled_attention",
        "causal, with a bias by distance",
        tiled(pattern=Pattern(causal=True)),
        F.tiled_attention_backward,
        {**SEQUENCE, "bias": (2, 1, 5)},
    ),
    Case(
        "tiled_attention",
        "with dropout, a mask and a query that may attend to nothing",
        lambda q, k, v: tiled(allowed=MASK, dropout_rate=0.4, rng=rng())(q, k, v),
        first_three(F.tiled_attention_backward),
        GROUPED,
    ),
    Case(
        "elu_plus_one",
        "for x above and below 0",
        F.elu_plus_one,
        F.elu_plus_one_backward,
        {"x": Signed((2, 3))},
        answer=True,  # to: is exp(x) < 1, for x < 0
    ),
    Case(
        "linear_attention",
        "causal, in chunks of two tokens",
        lambda q, k, v: F.linear_attention(q, k, v, causal=True, chunk=2),
        F.linear_attention_backward,
        FEATURES,
        answer=True,
    ),
    Case(
        "linear_attention",
        "with keys that are left out",
        lambda q, k, v: F.linear_attention(q, k, v, KEYS),
        F.linear_attention_backward,
        FEATURES,
        answer=True,
    ),
    Case(
        "additive_attention",
        "with a mask and a query that may attend to nothing",
        lambda q, k, v, w: F.additive_attention(q, k, v, w, MASK),
        F.additive_attention_backward,
        {"q": (1, 2, 2), "k": (1, 3, 2), "v": (1, 3, 2), "w": (2,)},
    ),
    Case("lstm", "two steps", recurrent(F.lstm), recurrent_backward(F.lstm_backward), LSTM),
    Case(
        "lstm",
        "in the reverse order, with padding",
        recurrent(F.lstm, mask=TOKENS, reverse=True),
        recurrent_backward(F.lstm_backward),
        LSTM_BATCH,
    ),
    Case("gru", "two steps", recurrent(F.gru), recurrent_backward(F.gru_backward), GRU),
    Case(
        "gru",
        "in the reverse order, with padding",
        recurrent(F.gru, mask=TOKENS, reverse=True),
        recurrent_backward(F.gru_backward),
        GRU_BATCH,
    ),
)

WIDE = (
    Case(
        "lstm",
        "two units",
        recurrent(F.lstm),
        recurrent_backward(F.lstm_backward),
        {"x": (1, 2, 1), "W": (1, 8), "U": (2, 8), "b": (8,), "h": (1, 2), "c": (1, 2)},
    ),
    Case(
        "gru",
        "two units",
        recurrent(F.gru),
        recurrent_backward(F.gru_backward),
        {"x": (1, 2, 1), "W": (1, 6), "U": (2, 6), "b": (6,), "d": (2,), "h": (1, 2)},
    ),
)

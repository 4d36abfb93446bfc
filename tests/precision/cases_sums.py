"""Matrix products, recurrent networks, and functions that move or add numbers; tables of positions."""

import numpy as np
from mpmath import mp

from minitransformer import functional as F
from minitransformer.system.generators import make_generator
from tests.precision import definitions
from tests.precision.case import Case
from tests.precision.running import pair

TERMS, ENTRY = ("terms", "terms"), ("entry", "entry")


def drawn(make):
    return lambda dtype: make(np.random.default_rng(17))


def affine(rng, N=3, I=5, O=4, spread=0.0):
    """x, W and b whose numbers are 10^-spread to 10^spread times order one."""
    shapes = {"x": (N, I), "W": (I, O), "b": (O,)}
    return {
        name: rng.standard_normal(shape) * 10.0 ** rng.uniform(-spread, spread, shape) for name, shape in shapes.items()
    }


def cancelling(rng):
    """Products that come in pairs of which the second nearly takes back the first."""
    arrays = affine(rng, I=6)
    arrays["x"][:, 3:] = arrays["x"][:, :3]
    arrays["W"][3:] = -arrays["W"][:3] * (1 + 1e-6)
    return arrays


def linear(words, make, long=False):
    return Case("linear", words, drawn(make), pair("linear"), definitions.linear, TERMS, long)


def conv1d(words, spread=0.0):
    def make(rng):
        shapes = {"x": (2, 5, 3), "W": (3, 3, 4), "b": (4,)}
        return {
            name: rng.standard_normal(shape) * 10.0 ** rng.uniform(-spread, spread, shape)
            for name, shape in shapes.items()
        }

    def define(**arrays):
        return definitions.conv1d(**arrays, dilation=2, causal=True)

    return Case("conv1d", words, drawn(make), pair("conv1d", dilation=2), define, TERMS)


def dropped(x):
    y, cache = F.dropout(x, 0.3, make_generator(5))
    return y, lambda dy: F.dropout_backward(dy, cache)


def define_dropped(x):
    kept = dropped(np.ones(x.shape))[0] != 0
    return definitions.dropout(x, kept, mp.mpf(round(0.3 * 65536)) / 65536)


IDS = np.array([[0, 2, 0], [1, 0, 2]])


def lookup(ids):
    def run(E):
        y, cache = F.embedding(ids, E, scale=512**0.5)

        def backward(dy):
            dE = np.zeros_like(E)
            F.embedding_backward(dy, cache, dE)
            return dE

        return y, backward

    return run


def embedding(words, ids, long=False):
    def define(E):
        return definitions.embedding(E, ids, 512**0.5)

    return Case(
        "embedding", words, drawn(lambda rng: {"E": rng.standard_normal((4, 3))}), lookup(ids), define, TERMS, long
    )


BUCKETS = F.relative_buckets(6, 40, 8, 16)


def distances(table):
    y, buckets = F.relative_bias(table, BUCKETS)

    def backward(dy):
        dtable = np.zeros_like(table)
        F.relative_bias_backward(dy, buckets, dtable)
        return dtable

    return y, backward


def repeated(x):
    y = F.repeat_heads(x, np.empty((1, 6, 1, 1)))
    return y, lambda dy: F.repeat_heads_backward(dy, (2,))


def turned(words, length):
    """The last three of `length` positions."""

    def inputs(dtype):
        cos, sin = (table[-3:] for table in F.rotary_tables(length, 6, dtype=dtype))
        return {"x": np.random.default_rng(18).standard_normal((1, 2, 3, 6)), "cos": cos, "sin": sin}

    return Case("rotate", words, inputs, pair("rotate"), definitions.rotate, TERMS, constants=("cos", "sin"))


def recurrent(name, words, T=4, shift=0.0, scale=1.0, long=False, units=TERMS):
    """`shift` is added to or subtracted from the biases, by chance: it opens and closes gates."""
    blocks, state = {"lstm": (4, "hc"), "gru": (3, "h")}[name]

    def make(rng):
        B, I, R = 2, 3, 2
        shapes = {"x": (B, T, I), "W": (I, blocks * R), "U": (R, blocks * R), "b": (blocks * R,)}
        shapes |= ({"d": (R,)} if name == "gru" else {}) | dict.fromkeys(state, (B, R))
        arrays = {key: scale * rng.standard_normal(shape) for key, shape in shapes.items()}
        return arrays | {"b": arrays["b"] + rng.choice([-shift, shift], shapes["b"])}

    def run(**arrays):
        first = tuple(arrays.pop(letter) for letter in state)
        (y, _), cache = getattr(F, name)(**arrays, state=first)

        def backward(dy):
            *gradients, dstate = getattr(F, f"{name}_backward")(dy, cache)
            return (*gradients, *dstate)

        return y, backward

    return Case(name, words, drawn(make), run, getattr(definitions, name), units, long)


POSITIONS = np.array([0, 1, 2, 100, 5_000, 100_000])


def angles(dtype):
    """t / 10000^(2i / 8), without rounding."""
    powers = [mp.mpf(10000) ** (mp.mpf(i) / 4) for i in range(4)]
    return {"angles": np.array([[int(t) / power for power in powers] for t in POSITIONS], object)}


def tables(name, words):
    def run(dtype):
        length = int(POSITIONS.max()) + 1
        if name == "sinusoidal_positions":
            return F.sinusoidal_positions(length, 8, dtype)[POSITIONS], None
        cos, sin = F.rotary_tables(length, 8, dtype=dtype)
        return np.stack([sin, cos], axis=-1).reshape(length, 8)[POSITIONS], None

    return Case(name, words, angles, run, definitions.turns, ("array", "array"))


DISTANCES = np.abs(np.arange(7) - np.arange(3, 6)[:, None])


def slopes(dtype):
    """2^(-8 i / 16) for the first 16 of 20 heads, then every other slope of 32 heads."""
    powers = [mp.mpf(i) / 2 for i in range(1, 17)] + [mp.mpf(i) / 4 for i in (1, 3, 5, 7)]
    return {"slopes": np.array([mp.mpf(2) ** -power for power in powers], object)}


SUMS = [
    linear("order one", affine),
    linear("sums that cancel", cancelling),
    linear("weights from 1e-10 to 1e10", lambda rng: affine(rng, spread=10.0)),
    linear("8,192 features", lambda rng: affine(rng, 1, 8192, 2), long=True),
    linear("4,096 tokens", lambda rng: affine(rng, 4096, 2, 2), long=True),
    conv1d("order one"),
    conv1d("weights from 1e-10 to 1e10", 10.0),
    Case("dropout", "order one", drawn(lambda rng: {"x": rng.standard_normal((5, 6))}), dropped, define_dropped, ENTRY),
    embedding("tokens that occur twice", IDS),
    embedding("one token 2,000 times", np.zeros((2, 1000), int), long=True),
    Case(
        "relative_bias",
        "40 keys",
        drawn(lambda rng: {"table": rng.standard_normal((8, 2))}),
        distances,
        lambda table: definitions.relative_bias(table, BUCKETS),
        TERMS,
    ),
    Case(
        "repeat_heads",
        "order one",
        drawn(lambda rng: {"x": rng.standard_normal((1, 2, 3, 4))}),
        repeated,
        lambda x: definitions.repeat_heads(x, 3),
        TERMS,
    ),
    turned("positions 0 to 2", 3),
    turned("positions near 100,000", 100_000),
    *(
        case
        for name in ("lstm", "gru")
        for case in (
            recurrent(name, "order one"),
            recurrent(name, "gates open or closed", shift=9.0),
            recurrent(name, "gates open or closed, absolute errors", shift=9.0, units=("one", "one")),
            recurrent(name, "weights of 1e-10", scale=1e-10),
            recurrent(name, "30 steps", T=30, long=True),
        )
    ),
    tables("sinusoidal_positions", "positions up to 100,000"),
    tables("rotary_tables", "positions up to 100,000"),
    Case(
        "alibi_bias",
        "20 heads",
        slopes,
        lambda dtype: (F.alibi_bias(20, 3, 7, start=3, dtype=dtype), None),
        lambda slopes: definitions.alibi_bias(slopes, DISTANCES),
        ENTRY,
    ),
]

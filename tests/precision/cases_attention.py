"""Attention: full, in tiles, linear and additive."""

from functools import partial

import numpy as np

from tests.precision import definitions
from tests.precision.case import Case
from tests.precision.running import pair

TERMS = ("terms", "terms")


def full(words, make, allowed=None, tile=(2, 2), long=False, units=TERMS):
    """A case of full attention, and one of tiled attention with the same numbers."""

    def inputs(dtype):
        return make(np.random.default_rng(11))

    def define(**arrays):
        return definitions.attention(**arrays, allowed=allowed)

    whole = pair("scaled_dot_product_attention", allowed=allowed)
    tiles = pair("tiled_attention", allowed=allowed, tile=tile)
    yield Case("scaled_dot_product_attention", words, inputs, partial(without_none, whole), define, units, long)
    yield Case("tiled_attention", words, inputs, partial(without_none, tiles), define, units, long)


def without_none(run, **arrays):
    """As `run`, but the gradient of a bias that is not there is left out."""
    y, backward = run(**arrays)
    return y, lambda dy: tuple(gradient for gradient in backward(dy) if gradient is not None)


def heads(rng, T=3, S=5, D=4, H=2, scale=1.0):
    """q, k and v of H heads that share one head of keys; `scale` is for q and k."""
    q, k, v = rng.standard_normal((1, H, T, D)), rng.standard_normal((1, 1, S, D)), rng.standard_normal((1, 1, S, D))
    return {"q": scale * q, "k": scale * k, "v": v}


def with_bias(rng):
    return heads(rng) | {"bias": 10 * rng.standard_normal((2, 3, 5))}


def nearly_equal_keys(rng):
    arrays = heads(rng)
    return arrays | {"k": 3 + 1e-5 * arrays["k"]}


def rising(rng, S=12, step=20.0):
    """Scores that rise by `step` with each key but the last: the largest is always in the last tile so far."""
    arrays = heads(rng, S=S)
    arrays["q"][..., 0] = 2.0
    arrays["k"][..., 0] = step * np.minimum(np.arange(S), S - 2)
    return arrays


def all_large(rng):
    """Scores of about 1e4 that differ by about one."""
    arrays = heads(rng)
    arrays["q"][..., 0] = 100.0
    arrays["k"][..., 0] = 200.0
    return arrays


def linear(words, make, causal, chunk=2, long=False):
    def inputs(dtype):
        return make(np.random.default_rng(12))

    def define(**arrays):
        return definitions.linear_attention(**arrays, causal=causal)

    return Case(
        "linear_attention", words, inputs, pair("linear_attention", causal=causal, chunk=chunk), define, TERMS, long
    )


def additive(words, scale, S=5, long=False, units=TERMS):
    def inputs(dtype):
        rng = np.random.default_rng(13)
        q, k = (scale * rng.standard_normal((1, length, 4)) for length in (3, S))
        return {"q": q, "k": k, "v": rng.standard_normal((1, S, 2)), "w": rng.standard_normal(4)}

    return Case(
        "additive_attention", words, inputs, pair("additive_attention"), definitions.additive_attention, units, long
    )


def shifted(rng, shift):
    """q and k so far below 0 that their features exp(q) and exp(k) are tiny."""
    arrays = heads(rng, T=5)
    return {"q": arrays["q"] + shift, "k": arrays["k"] + shift, "v": arrays["v"]}


ONE_KEY = np.arange(5) == np.array([[2], [0], [4]])
ATTENTION = [
    *full("order one", heads),
    *full("a bias of order ten", with_bias),
    *full("scores of 1e4", lambda rng: heads(rng, scale=100.0)),
    *full("scores of 1e4 that differ by 1", all_large),
    *full("nearly equal keys", nearly_equal_keys),
    *full("one allowed key", heads, allowed=ONE_KEY),
    *full("scores 20 apart, weights below 1e-19 made 0", rising, units=("array", "array")),
    *full("2,000 keys", lambda rng: heads(rng, T=1, S=2000, D=2, H=1), tile=(128, 512), long=True),
    linear("order one", heads, causal=False),
    linear("order one, causal", lambda rng: heads(rng, T=5), causal=True),
    linear("features of 1e-13", lambda rng: shifted(rng, -30.0), causal=True),
    linear("features of 1e-26, whose products vanish in float32", lambda rng: shifted(rng, -60.0), causal=True),
    linear("features of 1e-10 to 1e4", lambda rng: heads(rng, T=5, scale=10.0), causal=True),
    linear("150 tokens, causal", lambda rng: heads(rng, T=150, S=150, D=2, H=1), causal=True, chunk=64, long=True),
    linear("2,000 keys", lambda rng: heads(rng, T=1, S=2000, D=2, H=1), causal=False, long=True),
    additive("order one", 1.0),
    additive("saturated tanh", 6.0),
    additive("saturated tanh, absolute errors", 6.0, units=("one", "one")),
    additive("500 keys", 1.0, S=500, long=True),
]

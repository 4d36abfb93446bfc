"""The problems, the hints and the known mistakes of 15_permutation_test."""

import math

import numpy as np
from exercise_problems import sizes

from minitransformer.exercises import Exercise, Mistake, Output, Problem, Task

SIZES = sizes("T C", (7, 9), (8, 3), (6, 1))


def make_bank(rng, given, T, C):
    """Layers with random weights, and tokens to try them on."""
    bank = bank_of(rng, T, C)
    expected = np.array([equivariant for _, _, equivariant in bank])
    places = {
        f"for a layer that {name}": {"verdict": np.arange(len(bank)) == index}
        for index, (name, _, _) in enumerate(bank)
    }
    places["for layers that are equivariant"] = {"verdict": expected}
    places["for layers that are not equivariant"] = {"verdict": ~expected}
    layers = [layer for _, layer, _ in bank]
    return Problem((layers, rng.standard_normal((T, C)), rng), (expected,), places=places)


def bank_of(rng, T, C):
    """Layers for T tokens -> ((what it does, the layer, whether it is equivariant), ...)."""
    W, U = rng.standard_normal((2, C, C))
    at, queries, weight = rng.standard_normal((T, C)), rng.standard_normal((T, C)), rng.uniform(0, 1, (T, 1))
    past = np.tri(T, dtype=bool)
    pairs, shifted_pairs = at[np.arange(T) // 2], at[(np.arange(T) + 1) // 2]
    return (
        ("multiplies each token by a matrix", lambda x: (x[:, :, None] * W).sum(axis=1), True),
        ("is attention without positions", lambda x: attention(x @ W, x @ U, x), True),
        ("divides each token by its length", lambda x: x / np.sqrt((x * x).sum(axis=1)[:, None]), True),
        ("subtracts the mean of all tokens", lambda x: x - x.mean(axis=0), True),
        ("gives each token the mean of all", lambda x: np.tile(x.mean(axis=0), (T, 1)), True),
        ("adds a vector for each position", lambda x: x + at, False),
        ("adds a very small vector for each position", lambda x: x + 1e-3 * at, False),
        ("adds a vector for each position, the same for 0 and 1, 2 and 3 ...", lambda x: x + pairs, False),
        ("adds a vector for each position, the same for 1 and 2, 3 and 4 ...", lambda x: x + shifted_pairs, False),
        ("is attention with a causal mask", lambda x: attention(x @ W, x @ U, x, past), False),
        ("is attention with fixed queries", lambda x: attention(queries, x @ U, x), False),
        ("adds up the tokens so far", lambda x: np.cumsum(x, axis=0), False),
        ("reverses the tokens", lambda x: x[::-1].copy(), False),
        ("adds both neighbours", lambda x: x + np.tri(T, k=1) @ x - np.tri(T, k=-2) @ x, False),
        ("moves all tokens by one place, and the last to the front", lambda x: np.roll(x, 1, axis=0), False),
        (
            "gives each token a mean that favours some places",
            lambda x: np.tile((weight * x).sum(axis=0), (T, 1)),
            False,
        ),
    )


def attention(q, k, v, may_look=True):
    """One head, without a batch."""
    s = np.where(may_look, q @ k.T / math.sqrt(q.shape[-1]), -np.inf)
    p = np.exp(s - s.max(axis=-1, keepdims=True))
    return p / p.sum(axis=-1, keepdims=True) @ v


EXERCISE = Exercise(
    name="15_permutation_test",
    hints=(
        "Take a layer that adds positions, one that reverses all tokens, and one that takes a mean. Which of them "
        "should pass? And what does each do if the tokens come in another order?",
        "Call the layer twice: with the tokens as they are, and in another order. Before you compare, you must put "
        "one of the two results in order, too. A random order is better than one that you choose.",
        "order (T,);  the layer of (T, C) in this order, against (T, C) of the layer, in this order: their largest "
        "difference is below some small bound, or not",
    ),
    tasks=(
        Task(
            function="verdicts",
            outputs=(Output("verdict", ("layer",), "bool", sequence=True),),
            make=make_bank,
            sizes=SIZES,
            float32=False,  # rounding in float32 is no news about positions
            mistakes=(
                Mistake("order-tried-changes-nothing", {"rng.permutation(len(x))": "np.arange(len(x))"}),
                Mistake("only-reversed-order-tried", {"rng.permutation(len(x))": "np.arange(len(x))[::-1]"}),
                Mistake("only-two-tokens-change-places", {"rng.permutation(len(x))": "np.r_[1, 0, 2 : len(x)]"}),
                Mistake("asks-whether-output-stays-invariance", {"layer(x)[order]": "layer(x)"}),
                Mistake(
                    "features-shuffled-not-tokens",
                    {"len(x)": "x.shape[1]", "x[order]": "x[:, order]", "layer(x)[order]": "layer(x)[:, order]"},
                ),
                Mistake("output-put-inverse-order", {"layer(x)[order]": "layer(x)[np.argsort(order)]"}),
                Mistake("only-output-put-another-order", {"layer(x[order])": "layer(x)"}),
                Mistake("asks-equality-last-digit", {"< 1e-9": "== 0"}),
            ),
        ),
    ),
)

"""The problems, the hints and the known mistakes of 22_tiled_backward."""

import math

import numpy as np
from exercise_problems import backward_problem, sizes

from minitransformer.exercises import Exercise, Invariant, Mistake, Output, Problem, Task

SIZES = sizes("B T S D size", (2, 3, 7, 5, 4), (3, 5, 6, 2, 2), (1, 2, 4, 3, 4), (1, 1, 1, 1, 1))


def make_tiles(rng, given, B, T, S, D, size):
    """Queries, keys and values of order one, in more than one tile; in one of the problems, in a single tile."""
    shapes = {"q": (B, T, D), "k": (B, S, D), "v": (B, S, D)}
    inputs = {name: rng.standard_normal(shape) for name, shape in shapes.items()}

    def forward(**arrays):
        return given.tiled_attention(**arrays, size=size)

    problem = backward_problem(forward, inputs, ("q", "k", "v"), rng, ratios={"sqrt(D)": math.sqrt(D), "D": D})
    return Problem(problem.args, problem.expected, {**inputs, "size": size}, problem.y, problem.ratios)


def keys_gain_nothing_together(outputs, problem):
    """Whether dk sums to 0 over all keys."""
    return bool(np.abs(outputs[1].sum(axis=1)).max() < 1e-9)


MISTAKES = (
    Mistake(
        "weights-divided-sum-own-tile",
        {
            "p = np.exp(q @ k.swapaxes(-1, -2) * scale - logsum)": "p = np.exp(q @ k.swapaxes(-1, -2) * scale); "
            "p = p / p.sum(axis=-1, keepdims=True)"
        },
    ),
    Mistake("price-summed-over-tiles-own", {"(do * o).sum": "(p * dp).sum"}),
    Mistake(
        "price-average-over-tiles-own",
        {
            "(do * o).sum(axis=-1, keepdims=True)": "(p * dp).sum(axis=-1, keepdims=True) "
            "/ p.sum(axis=-1, keepdims=True)"
        },
    ),
    Mistake("average-forgotten", {"(dp - price)": "dp"}),
    Mistake("one-average-for-all", {"axis=-1, keepdims=True": "axis=(-2, -1), keepdims=True"}),
    Mistake("average-price-mean-over-features", {"(do * o).sum": "(do * o).mean"}),
    Mistake("weights-not-divided-all", {" - logsum": ""}),
    Mistake("scale-missing-scores-made-again", {"swapaxes(-1, -2) * scale - logsum": "swapaxes(-1, -2) - logsum"}),
    Mistake("no-scale-backward", {"ds @ k * scale": "ds @ k", "@ q * scale": "@ q"}),
    Mistake("scale-in-dq-only", {"@ q * scale": "@ q"}),
    Mistake(
        "wrong-order-returned",
        {
            "ds.swapaxes(-1, -2) @ q * scale, p.swapaxes(-1, -2) @ do": "p.swapaxes(-1, -2) @ do, "
            "ds.swapaxes(-1, -2) @ q * scale"
        },
    ),
    Mistake("every-query-counts-fully", {"p.swapaxes(-1, -2) @ do": "np.ones_like(p).swapaxes(-1, -2) @ do"}),
)

EXERCISE = Exercise(
    name="22_tiled_backward",
    hints=(
        "Which of the five lines of lesson 06 need only this tile, and which needs the whole row?",
        "The weights need the denominator of the whole row, and the scores' gradient its average price. One number for "
        "each row stands for either of them.",
        "p (T, size) = exp(s − number for each row);  ds (T, size) = p ∘ (dp − number for each row), the second number "
        "from do and o;  the rest is (T, size) (size, D) and (size, T) (T, D)",
    ),
    tasks=(
        Task(
            function="tiled_backward",
            forward="tiled_attention",
            outputs=(Output("dq", "BTD"), Output("dk", "BSD"), Output("dv", "BSD")),
            make=make_tiles,
            sizes=SIZES,
            linear=True,
            invariants=(
                Invariant(
                    "dk summed over the keys is 0: adding one vector to all keys changes no weight",
                    keys_gain_nothing_together,
                ),
            ),
            mistakes=MISTAKES,
        ),
    ),
)

"""The problems, the hints and the known mistakes of 22_tiled_backward."""

import math

import numpy as np

from minitransformer.exercises import Exercise, Invariant, Mistake, Output, Problem, Task
from minitransformer.exercises.problems import backward_problem, sizes

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
        "the weights are divided by the sum of their own tile",
        "A softmax divides by a sum over all keys of the row. Which number that you are given knows all of them?",
        {
            "p = np.exp(q @ k.swapaxes(-1, -2) * scale - logsum)": "p = np.exp(q @ k.swapaxes(-1, -2) * scale); "
            "p = p / p.sum(axis=-1, keepdims=True)"
        },
    ),
    Mistake(
        "the price is summed over the tile's own keys",
        "p·dp is a sum over all keys of the row. Which keys are missing in yours?",
        {"(do * o).sum": "(p * dp).sum"},
    ),
    Mistake(
        "the price is the average over the tile's own keys",
        "With what does each key compete: with its neighbours in the tile, or with all keys of the row?",
        {
            "(do * o).sum(axis=-1, keepdims=True)": "(p * dp).sum(axis=-1, keepdims=True) "
            "/ p.sum(axis=-1, keepdims=True)"
        },
    ),
    Mistake(
        "the average price is forgotten",
        "If all keys of a row have the same price, is there any reason to move a score? What does your formula say?",
        {"(dp - price)": "dp"},
    ),
    Mistake(
        "there is one price for all rows",
        "Does a row of the softmax know about the other rows? Which axis, with keepdims, keeps them apart?",
        {"axis=-1, keepdims=True": "axis=(-2, -1), keepdims=True"},
    ),
    Mistake(
        "the average price is a mean over the features",
        "do·o is a dot product. By what does np.mean divide it?",
        {"(do * o).sum": "(do * o).mean"},
    ),
    Mistake(
        "the weights are not divided at all",
        "What do your weights sum to, over all tiles of a row?",
        {" - logsum": ""},
    ),
    Mistake(
        "the scale is missing in the scores that are made again",
        "Forward divides the scores by √D before the exponential. Do you compute the same scores?",
        {"swapaxes(-1, -2) * scale - logsum": "swapaxes(-1, -2) - logsum"},
    ),
    Mistake(
        "the scale is missing in dq and dk",
        "The forward divides the scores by √D. What does the chain rule say about a constant factor?",
        {"ds @ k * scale": "ds @ k", "@ q * scale": "@ q"},
    ),
    Mistake(
        "the scale is in dq, but not in dk",
        "A score is q·k / √D. What is divided: q, or the product of both?",
        {"@ q * scale": "@ q"},
    ),
    Mistake(
        "dk and dv are returned in the wrong order",
        "Which of the two comes first in the docstring?",
        {
            "ds.swapaxes(-1, -2) @ q * scale, p.swapaxes(-1, -2) @ do": "p.swapaxes(-1, -2) @ do, "
            "ds.swapaxes(-1, -2) @ q * scale"
        },
    ),
    Mistake(
        "every query counts fully in dv",
        "If a query gives a value the weight 0, does its answer depend on this value?",
        {"p.swapaxes(-1, -2) @ do": "np.ones_like(p).swapaxes(-1, -2) @ do"},
    ),
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

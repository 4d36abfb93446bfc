"""The problems, the hints and the known mistakes of 02_relu_backward."""

import numpy as np
from exercise_problems import backward_problem, flat, sizes

from minitransformer.exercises import Exercise, Mistake, Output, Replacement, Task
from minitransformer.functional import relu_backward

SIZES = sizes("B T F", (2, 3, 5), (3, 4, 2), (1, 1, 1))


def make_relu(rng, given, B, T, F):
    """Entries of both signs."""
    x = rng.standard_normal((B, T, F))
    places = {"where y is 0": {"dx": x <= 0}, "where y is not 0": {"dx": x > 0}}
    return backward_problem(given.relu, {"x": x}, ("x",), rng, places=places)


def adapt_relu(mine):
    """The learner's relu_backward(dy, y) as the library calls its own."""
    return lambda dy, y: np.asarray(mine(flat(dy), flat(y)), dy.dtype).reshape(dy.shape)


EXERCISE = Exercise(
    name="02_relu_backward",
    hints=(
        "Draw y = max(0, x). What is its slope to the left of 0, and to the right?",
        "y is positive exactly where x is. So y tells you on which side of 0 each entry was.",
        "dx, dy and y have the same shape, and nothing is summed: dx = dy ∘ (0 or 1, decided by y)",
    ),
    tasks=(
        Task(
            function="relu_backward",
            forward="relu",
            outputs=(Output("dx", "BTF"),),
            make=make_relu,
            sizes=SIZES,
            linear=True,
            mistakes=(
                Mistake("relu-gate-open", {">": ">="}),
                Mistake("relu-gated-by-gradient", {"dy * (y > 0)": "np.maximum(dy, 0)"}),
                Mistake("relu-times-output", {"(y > 0)": "y"}),
                Mistake("relu-slope-alone", {"dy * (y > 0)": "np.where(y > 0, 1.0, 0.0)"}),
                Mistake("relu-gate-inverted", {">": "<="}),
            ),
        ),
    ),
    replaces={"relu_backward": Replacement(relu_backward, adapt_relu)},
)

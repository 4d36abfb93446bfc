"""The problems that 02_relu_backward is tried on, its hints, and the mistakes that are known."""

import numpy as np

from minitransformer.exercises import Exercise, Mistake, Output, Replacement, Task
from minitransformer.exercises.problems import backward_problem, flat, sizes
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
    see='lesson 02, "Follow each number to the loss"',
    hints=(
        "Draw y = max(0, x). What is the slope left of 0, and what is it right of 0?",
        "y is positive just where x is, so y is enough to know on which side each entry stood.",
        "dx, dy and y have one shape, and no sum runs over anything: dx = dy ∘ (0 or 1, by y)",
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
                Mistake(
                    "the gate is open everywhere",
                    "What is remembered is y, not x. Can y ever be below 0?",
                    {">": ">="},
                ),
                Mistake(
                    "the gate goes by the sign of the gradient",
                    "Who decided in the forward which entries pass: x, or what came back later?",
                    {"dy * (y > 0)": "np.maximum(dy, 0)"},
                ),
                Mistake(
                    "dy is multiplied by y",
                    "That is how high the graph is. How steep is it there?",
                    {"(y > 0)": "y"},
                ),
                Mistake(
                    "dy is missing",
                    "This is how y moves with x. How does the loss move with y?",
                    {"dy * (y > 0)": "np.where(y > 0, 1.0, 0.0)"},
                ),
                Mistake(
                    "the gate is the wrong way round",
                    "Where y is positive, y = x. What does a gradient do on its way through y = x?",
                    {">": "<="},
                ),
            ),
        ),
    ),
    replaces={"relu_backward": Replacement(relu_backward, adapt_relu)},
)

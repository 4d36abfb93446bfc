"""The problem, the hints and the known mistakes of 19_rope_backward."""

import numpy as np
from exercise_problems import backward_problem, sizes

from minitransformer.exercises import Exercise, Invariant, Mistake, Output, Task

SIZES = sizes("B T D", (2, 3, 8), (3, 5, 4), (1, 1, 2))


def make_rotation(rng, given, B, T, D):
    """Random angles for each position and pair, so that no two of them are related."""
    angles = rng.uniform(0.3, 6.0, (T, D // 2))
    inputs = {"x": rng.standard_normal((B, T, D)), "cos": np.cos(angles), "sin": np.sin(angles)}
    return backward_problem(given.rotate, inputs, ("x",), rng)


def keeps_lengths(outputs, problem):
    """Whether each pair of dx is as long as that of dy."""
    lengths = [np.hypot(array[..., 0::2], array[..., 1::2]) for array in (outputs[0], problem.args[0])]
    return bool(np.allclose(*lengths, atol=1e-9))


MISTAKES = (
    Mistake(
        "gradient-turned-forward-once-more",
        {
            "first * cos + second * sin": "first * cos - second * sin",
            "second * cos - first * sin": "second * cos + first * sin",
        },
    ),
    Mistake("first-feature-pair-wrong-sign", {"first * cos + second * sin": "first * cos - second * sin"}),
    Mistake("second-feature-pair-wrong-sign", {"second * cos - first * sin": "second * cos + first * sin"}),
    Mistake("gradient-not-turned-all", {"first * cos + second * sin": "first", "second * cos - first * sin": "second"}),
    Mistake(
        "cosine-sine-exchanged",
        {
            "first * cos + second * sin": "first * sin + second * cos",
            "second * cos - first * sin": "second * sin - first * cos",
        },
    ),
    Mistake(
        "terms-sine-missing",
        {"first * cos + second * sin": "first * cos", "second * cos - first * sin": "second * cos"},
    ),
    Mistake(
        "feature-i-paired-feature-i",
        {
            "dy[..., 0::2], dy[..., 1::2]": "np.split(dy, 2, axis=-1)",
            "    dx[..., 0::2] = first * cos": "    half = dy.shape[-1] // 2\n    dx[..., :half] = first * cos",
            "dx[..., 1::2]": "dx[..., half:]",
        },
    ),
    Mistake(
        "two-features-pair-come-back",
        {"dx[..., 0::2]": "dx[..., 1::2]", "dx[..., 1::2] = second": "dx[..., 0::2] = second"},
    ),
    Mistake("every-position-turned-back-angles", {"cos, sin = cache": "cos, sin = (table[:1] for table in cache)"}),
)

EXERCISE = Exercise(
    name="19_rope_backward",
    hints=(
        "A rotation is a product with a matrix. What does the backward pass of a product with a matrix do with it?",
        "The transpose of a rotation turns the other way. Each feature of a pair gets two terms, one from each output "
        "that it reaches.",
        "dx (B, T, D): at the even places dy_even ∘ cos and dy_odd ∘ sin, at the odd places the same two with sine and "
        "cosine exchanged; one of the four terms has a minus",
    ),
    tasks=(
        Task(
            function="rotate_backward",
            forward="rotate",
            outputs=(Output("dx", "BTD"),),
            make=make_rotation,
            sizes=SIZES,
            linear=True,
            invariants=(
                Invariant("a rotation keeps lengths: each pair of dx is as long as that of dy", keeps_lengths),
            ),
            mistakes=MISTAKES,
        ),
    ),
)

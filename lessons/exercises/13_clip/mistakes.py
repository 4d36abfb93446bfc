"""The problems, the hints and the known mistakes of 13_clip."""

import numpy as np
from exercise_problems import sizes

from minitransformer.core import Parameter
from minitransformer.exercises import Exercise, Invariant, Mistake, Output, Problem, Replacement, Task
from minitransformer.training import clip_grad_norm
from minitransformer.training.clipping import clip_factor

SIZES = sizes("C F", (3, 4), (5, 2), (1, 1))
NAMES = ("dW long", "db long", "dW short", "db short", "dW zero", "db zero")


def make_gradients(rng, given, C, F):
    """Three steps of a layer. Their gradients are far too long, short enough, and 0."""
    limit = float(rng.uniform(1.5, 3))
    long = [rng.standard_normal((C, F)), rng.standard_normal(F)]
    long = [400 / length_of(long) * g for g in long]
    short = [rng.standard_normal((C, F)), rng.standard_normal(F)]
    share = rng.uniform(0.3, 0.8) * limit / length_of(short)
    steps = [long, [share * g for g in short], [np.zeros((C, F)), np.zeros(F)]]
    expected = []
    for gradients in steps:
        parameters = [Parameter(np.zeros(g.shape)) for g in gradients]
        for parameter, g in zip(parameters, gradients, strict=True):
            parameter.grad = g.copy()
        clip_grad_norm(parameters, limit)
        expected += [parameter.grad.copy() for parameter in parameters]
    return Problem((steps, limit), tuple(expected), ratios={"limit": limit})


def length_of(gradients):
    """The length of all gradients as one vector."""
    return np.linalg.norm(np.concatenate([g.reshape(-1) for g in gradients]))


def has_at_most_the_length(outputs, problem):
    """Whether the gradient of no step is longer than the limit."""
    return all(length_of(outputs[i : i + 2]) < problem.args[1] * (1 + 1e-5) for i in (0, 2, 4))


def adapt_clip(mine):
    """The learner's clip_each as the library's clip_factor. That gets only the norm, which is clipped as a vector."""

    def factor(norm, max_norm):
        vector = np.reshape(norm, 1)
        if not vector.any():
            return np.ones_like(norm)
        (clipped,) = mine([[vector.copy()]], max_norm)
        return np.asarray(clipped / vector, vector.dtype).reshape(())

    return factor


EXERCISE = Exercise(
    name="13_clip",
    replaces={"clip_each": Replacement(clip_factor, adapt_clip)},
    hints=(
        "Two arrays have the lengths 3 and 4, and the limit is 1. How long are they together, and how long should "
        "each become?",
        "One number scales all arrays, and it is never above 1. What is it when |g| is exactly the limit?",
        "|g| = the root of one sum over all entries of all arrays;  each array, times the smaller of two numbers",
    ),
    tasks=(
        Task(
            function="clip_each",
            outputs=tuple(Output(name, "CF" if "W" in name else "F") for name in NAMES),
            make=make_gradients,
            sizes=SIZES,
            tolerance=1e-8,  # for limit / |g| and limit / (|g| + 1e-6)
            invariants=(Invariant("no step's gradient is longer than the limit", has_at_most_the_length),),
            mistakes=(
                Mistake(
                    "each-array-clipped-own-length",
                    {"[factor * g": "[min(1.0, limit / (np.linalg.norm(g) + 1e-6)) * g"},
                ),
                Mistake("short-gradients-scaled-too", {"min(1.0, limit / (length + 1e-6))": "limit / (length + 1e-6)"}),
                Mistake("length-left-squared", {"np.sqrt(": "("}),
                Mistake("each-entry-clipped-itself", {"factor * g": "np.clip(g, -limit, limit)"}),
                Mistake(
                    "long-gradients-become-longer", {"min(1.0, limit / (length + 1e-6))": "max(1.0, length / limit)"}
                ),
                Mistake(
                    "largest-entry-used-length",
                    {"np.sqrt(sum((g**2).sum() for g in gradients))": "max(np.abs(g).max() for g in gradients)"},
                ),
                Mistake(
                    "arrays-lengths-added",
                    {"np.sqrt(sum((g**2).sum() for g in gradients))": "sum(np.linalg.norm(g) for g in gradients)"},
                ),
            ),
        ),
    ),
)

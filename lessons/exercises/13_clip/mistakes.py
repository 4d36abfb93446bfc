"""The problems that 13_clip is tried on, its hints, and the mistakes that are known."""

import numpy as np

from minitransformer.core import Parameter
from minitransformer.exercises import Exercise, Invariant, Mistake, Output, Problem, Replacement, Task
from minitransformer.exercises.problems import sizes
from minitransformer.training import clip_grad_norm
from minitransformer.training.clipping import clip_factor

SIZES = sizes("I O", (3, 4), (5, 2), (1, 1))
NAMES = ("dW long", "db long", "dW short", "db short", "dW zero", "db zero")


def make_gradients(rng, given, I, O):
    """Three steps of a layer: the gradient is far too long, short enough, and 0."""
    c = float(rng.uniform(1.5, 3))
    long = [rng.standard_normal((I, O)), rng.standard_normal(O)]
    long = [400 / length_of(long) * g for g in long]
    short = [rng.standard_normal((I, O)), rng.standard_normal(O)]
    share = rng.uniform(0.3, 0.8) * c / length_of(short)
    steps = [long, [share * g for g in short], [np.zeros((I, O)), np.zeros(O)]]
    expected = []
    for gradients in steps:
        parameters = [Parameter(np.zeros(g.shape)) for g in gradients]
        for parameter, g in zip(parameters, gradients, strict=True):
            parameter.grad = g
        clip_grad_norm(parameters, c)
        expected += [parameter.grad.copy() for parameter in parameters]
    return Problem((steps, c), tuple(expected), ratios={"c": c})


def length_of(gradients):
    """Of all of them as one vector."""
    return np.linalg.norm(np.concatenate([g.reshape(-1) for g in gradients]))


def has_at_most_the_length(outputs, problem):
    """Whether no step is longer than c."""
    return all(length_of(outputs[i : i + 2]) < problem.args[1] * (1 + 1e-5) for i in (0, 2, 4))


def adapt_clip(mine):
    """The learner's clip_each as the library's clip_factor, which knows the norm only: that is clipped as a vector."""

    def factor(norm, max_norm):
        vector = np.reshape(norm, 1)
        if not vector.any():
            return np.ones_like(norm)
        (clipped,) = mine([[vector.copy()]], max_norm)
        return np.asarray(clipped / vector, vector.dtype).reshape(())

    return factor


EXERCISE = Exercise(
    name="13_clip",
    see='lesson 13, "Clipping"',
    replaces={"clip_each": Replacement(clip_factor, adapt_clip)},
    hints=(
        "Two gradients of the lengths 3 and 4, and c = 1. How long are they together, and how long is each to become?",
        "One number scales all arrays, and it is never above 1. What is it when |g| is just c?",
        "|g| = the root of one sum, over all entries of all arrays;  each array times the smaller one of two numbers",
    ),
    tasks=(
        Task(
            function="clip_each",
            outputs=tuple(Output(name, "IO" if "W" in name else "O") for name in NAMES),
            make=make_gradients,
            sizes=SIZES,
            tolerance=1e-8,  # for c / |g| and c / (|g| + 1e-6)
            invariants=(Invariant("no step's gradient is longer than c", has_at_most_the_length),),
            mistakes=(
                Mistake(
                    "each array is clipped by its own length",
                    "The long ones become shorter and the short ones stay: does the whole still point where it did?",
                    {"[factor * g": "[min(1.0, c / (np.linalg.norm(g) + 1e-6)) * g"},
                ),
                Mistake(
                    "short gradients are scaled, too",
                    "Near the minimum gradients are short. What becomes of them if each step has the length c?",
                    {"min(1.0, c / (length + 1e-6))": "c / (length + 1e-6)"},
                ),
                Mistake(
                    "the length is left squared",
                    "How long is the vector (3, 4): 25, or 5?",
                    {"np.sqrt(": "("},
                ),
                Mistake(
                    "each entry is clipped by itself",
                    "The vector (100, 1) with c = 1: which way does it point, and which way afterwards?",
                    {"factor * g": "np.clip(g, -c, c)"},
                ),
                Mistake(
                    "long gradients become longer",
                    "|g| = 10 and c = 1: what is your factor, and how long is the product?",
                    {"min(1.0, c / (length + 1e-6))": "max(1.0, length / c)"},
                ),
                Mistake(
                    "the largest entry is taken for the length",
                    "How long is the vector (3, 4), and what is its largest entry?",
                    {"np.sqrt(sum((g**2).sum() for g in gradients))": "max(np.abs(g).max() for g in gradients)"},
                ),
                Mistake(
                    "the arrays' lengths are added",
                    "How long is the vector (3, 4)? Is that the length of (3) plus that of (4)?",
                    {"np.sqrt(sum((g**2).sum() for g in gradients))": "sum(np.linalg.norm(g) for g in gradients)"},
                ),
            ),
        ),
    ),
)

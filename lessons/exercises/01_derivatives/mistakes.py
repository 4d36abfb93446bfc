"""The problems that 01_derivatives is tried on, its hints, and the mistakes that are known."""

import numpy as np

from minitransformer.exercises import Exercise, Mistake, Output, Problem, Task
from minitransformer.exercises.problems import sizes
from minitransformer.gradcheck import complex_step

SIZES = sizes("M N", (4, 5), (3, 2), (1, 1), (1, 4))
CONSTANT = 1e6  # added to a function: what is found by a difference loses its digits, see lesson 01, "The surprise"


def make_quadratic(rng, given, M, N):
    """A quadratic f, of which a central difference is exact with any step, so that the step can be large."""
    x, matrix, vector = rng.standard_normal((M, N)), rng.standard_normal((M * N, M * N)), rng.standard_normal((M, N))

    def f(x):
        return x.reshape(-1) @ matrix @ x.reshape(-1) + np.sum(vector * x)

    return Problem((f, x, rng.uniform(0.05, 0.2)), (complex_step(f, x),))


def make_analytic(rng, given, M, N):
    """An analytic f, with a constant that drowns every difference."""
    x, a, b = (rng.standard_normal((M, N)) for _ in range(3))

    def f(x):
        return np.sum(a * np.exp(x) * np.sin(x)) + np.sum(b * x**3) * np.sum(a * x) + CONSTANT

    return Problem((f, x), (complex_step(f, x),))


CENTRAL_MISTAKES = (
    Mistake(
        "the difference is one-sided",
        "Which of the terms of Taylor's series goes if you step to both sides, and stays if you step to one?",
        {"f(x - step)) / (2 * h)": "f(x)) / h"},
    ),
    Mistake("it is divided by h", "How far are x + h and x − h apart?", {"(2 * h)": "h"}),
    Mistake(
        "all entries of x are moved at once",
        "The number is the same for every entry. If two entries move, how can you tell whose doing the change was?",
        {"step[i] = h": "step += h"},
    ),
    Mistake(
        "whole rows of x are moved at once",
        "x has two axes. Over what does `for i in range(len(x))` go, and what is x[i]?",
        {"np.ndindex(*x.shape)": "range(len(x))"},
    ),
    Mistake(
        "an entry that was moved is not put back",
        "The first entry is right and the later ones are not. Where is the first entry while the second is tried?",
        {
            "    for i": "    step = np.zeros(x.shape)\n    for i",
            "        step = np.zeros(x.shape)\n": "",
            "step[i] = h\n": "step[i] = h\n        above = f(x + step)\n        step[i] = -h\n",
            "f(x + step) - f(x - step)": "above - f(x + step)",
        },
    ),
)

COMPLEX_MISTAKES = (
    Mistake(
        "the imaginary part is not divided by the step",
        "Your numbers are all tiny. By how much did you move x, and what is change over step?",
        {" / 1e-30": ""},
    ),
    Mistake(
        "the real part of f is taken",
        "In f(x + ih) = f + ih f' − ..., which part holds f and which holds its derivative?",
        {".imag": ".real"},
    ),
    Mistake(
        "the imaginary part is lost: kept in a real array, or the real part of a difference is taken",
        "The step is imaginary. Is your copy of x complex, and in which part of f(x + ih) does the step show?",
        {"f(z).imag": "(f(z) - f(x)).real"},
    ),
    Mistake(
        "it is a difference along the real line",
        "This f is large, and a difference of two large numbers has lost its digits. Where is the imaginary step?",
        {
            "z = x.astype(complex)": "z = np.zeros(x.shape)",
            "1e-30j": "6e-6",
            "f(z).imag / 1e-30": "(f(x + z) - f(x - z)) / 12e-6",
        },
    ),
    Mistake(
        "all entries of x are moved at once",
        "The number is the same for every entry. x + 1e-30j adds to how many entries?",
        {"z[i] += 1e-30j": "z += 1e-30j"},
    ),
    Mistake(
        "an entry that was moved is not put back",
        "Does each entry begin with a fresh copy of x, or with one in which the entries before it have moved already?",
        {"        z = x.astype(complex)\n": "", "    for i": "    z = x.astype(complex)\n    for i"},
    ),
)

EXERCISE = Exercise(
    name="01_derivatives",
    see='lesson 01, "What a step leaves out" and "A step to the side"',
    hints=(
        "A gradient has one number for each entry of x. What must stay where it is while one of them is tried?",
        "Two-sided: two calls of f an entry. Complex: one call, and the change sits in the part that was 0 before.",
        "gradient[i] = (number − number) / (the way between);  gradient[i] = (a part of one complex number) / step",
    ),
    tasks=(
        # not tried on float32 inputs: their steps are made for float64
        Task("central_difference", (Output("gradient", "MN"),), make_quadratic, SIZES, CENTRAL_MISTAKES, float32=False),
        Task("complex_step", (Output("gradient", "MN"),), make_analytic, SIZES, COMPLEX_MISTAKES, float32=False),
    ),
)

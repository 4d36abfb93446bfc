"""The problems, the hints and the known mistakes of 01_derivatives."""

import numpy as np

from minitransformer.exercises import Exercise, Mistake, Output, Problem, Task
from minitransformer.exercises.problems import sizes
from minitransformer.gradcheck import complex_step

SIZES = sizes("T C", (4, 5), (3, 2), (1, 1), (1, 4))
CONSTANT = 1e6  # added to a function, so that differences lose their digits; see lesson 01, "The surprise"


def make_quadratic(rng, given, T, C):
    """A quadratic f: its central difference is exact with any step, so the step can be large."""
    x, matrix, vector = rng.standard_normal((T, C)), rng.standard_normal((T * C, T * C)), rng.standard_normal((T, C))

    def f(x):
        return x.reshape(-1) @ matrix @ x.reshape(-1) + np.sum(vector * x)

    return Problem((f, x, rng.uniform(0.05, 0.2)), (complex_step(f, x),))


def make_analytic(rng, given, T, C):
    """An analytic f, with a constant that drowns every difference."""
    x, a, b = (rng.standard_normal((T, C)) for _ in range(3))

    def f(x):
        return np.sum(a * np.exp(x) * np.sin(x)) + np.sum(b * x**3) * np.sum(a * x) + CONSTANT

    return Problem((f, x), (complex_step(f, x),))


CENTRAL_MISTAKES = (
    Mistake(
        "the difference is one-sided",
        "Taylor's series has a term with h². It cancels if you step to both sides. Does it cancel if you step to "
        "one side?",
        {"f(x - step)) / (2 * h)": "f(x)) / h"},
    ),
    Mistake("the difference is divided by h", "How far apart are x + h and x − h?", {"(2 * h)": "h"}),
    Mistake(
        "all entries of x are moved at once",
        "You get the same number for every entry. If all entries move together, how can you tell which one changed f?",
        {"step[i] = h": "step += h"},
    ),
    Mistake(
        "whole rows of x are moved at once",
        "x has two axes. What does `for i in range(len(x))` run over, and what is x[i]?",
        {"np.ndindex(*x.shape)": "range(len(x))"},
    ),
    Mistake(
        "an entry that was moved is not put back",
        "The first entry is right and the later ones are wrong. Where is the first entry while you try the second?",
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
        "Your numbers are all tiny. A slope is a change divided by a step: how far did you move x?",
        {" / 1e-30": ""},
    ),
    Mistake(
        "the real part of f is taken",
        "f(x + ih) = f(x) + ih f'(x) − ... Which part holds f, and which part holds its derivative?",
        {".imag": ".real"},
    ),
    Mistake(
        "the imaginary part is lost: it was stored in a real array, or the real part of a difference was taken",
        "The step is imaginary. Is your copy of x complex? And in which part of f(x + ih) does the step show?",
        {"f(z).imag": "(f(z) - f(x)).real"},
    ),
    Mistake(
        "this is a difference of real values",
        "This f is large, and a difference of two large numbers loses its digits. Where is the imaginary step?",
        {
            "z = x.astype(complex)": "z = np.zeros(x.shape)",
            "1e-30j": "6e-6",
            "f(z).imag / 1e-30": "(f(x + z) - f(x - z)) / 12e-6",
        },
    ),
    Mistake(
        "all entries of x are moved at once",
        "You get the same number for every entry. How many entries does x + 1e-30j move?",
        {"z[i] += 1e-30j": "z += 1e-30j"},
    ),
    Mistake(
        "an entry that was moved is not put back",
        "Does each entry start from a fresh copy of x, or from one in which earlier entries have already moved?",
        {"        z = x.astype(complex)\n": "", "    for i": "    z = x.astype(complex)\n    for i"},
    ),
)

EXERCISE = Exercise(
    name="01_derivatives",
    hints=(
        "A gradient has one number for each entry of x. What must stay the same while you try one of them?",
        "Two-sided difference: two calls of f for each entry. Complex step: one call, and the change is in the "
        "part that was 0 before.",
        "gradient[i] = (number − number) / (distance between the two);  gradient[i] = (one part of a complex "
        "number) / step",
    ),
    tasks=(
        # not tried on float32 inputs: the steps are made for float64
        Task("central_difference", (Output("gradient", "TC"),), make_quadratic, SIZES, CENTRAL_MISTAKES, float32=False),
        Task("complex_step", (Output("gradient", "TC"),), make_analytic, SIZES, COMPLEX_MISTAKES, float32=False),
    ),
)

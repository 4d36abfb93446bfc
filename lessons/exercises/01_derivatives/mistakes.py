"""The problems, the hints and the known mistakes of 01_derivatives."""

import numpy as np
from exercise_problems import sizes

from minitransformer.exercises import Exercise, Mistake, Output, Problem, Task
from minitransformer.gradcheck import complex_step

SIZES = sizes("T C", (4, 5), (3, 2), (1, 1), (1, 4))
CONSTANT = 1e6  # added to a function, so that differences lose their digits; see lesson 01, "Add a million to the loss"


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
    Mistake("difference-one-sided", {"f(x - step)) / (2 * h)": "f(x)) / h"}),
    Mistake("difference-divided-h", {"(2 * h)": "h"}),
    Mistake("all-entries-moved", {"step[i] = h": "step += h"}),
    Mistake("whole-rows-x-moved-once", {"np.ndindex(*x.shape)": "range(len(x))"}),
    Mistake(
        "entry-not-put-back",
        {
            "    for i": "    step = np.zeros(x.shape)\n    for i",
            "        step = np.zeros(x.shape)\n": "",
            "step[i] = h\n": "step[i] = h\n        above = f(x + step)\n        step[i] = -h\n",
            "f(x + step) - f(x - step)": "above - f(x + step)",
        },
    ),
)

COMPLEX_MISTAKES = (
    Mistake("imaginary-part-not-divided-step", {" / 1e-30": ""}),
    Mistake("real-part-f-taken", {".imag": ".real"}),
    Mistake("imaginary-part-lost-stored-real", {"f(z).imag": "(f(z) - f(x)).real"}),
    Mistake(
        "difference-real-values",
        {
            "z = x.astype(complex)": "z = np.zeros(x.shape)",
            "1e-30j": "6e-6",
            "f(z).imag / 1e-30": "(f(x + z) - f(x - z)) / 12e-6",
        },
    ),
    Mistake("all-entries-moved", {"z[i] += 1e-30j": "z += 1e-30j"}),
    Mistake(
        "entry-not-put-back",
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

"""Lesson 01: derivatives by trying."""

import numpy as np

from minitransformer.exercises.exercise import Exercise, Mistake, Output, Problem, Task
from minitransformer.gradcheck import complex_step

M, N = 4, 5
CONSTANT = 1e6  # added to a function: what is found by a difference loses its digits, see lesson 01, "The surprise"


def make_quadratic(rng, given):
    """A quadratic f, of which a central difference is exact with any step, so that the step can be large."""
    x, matrix, vector = rng.standard_normal((M, N)), rng.standard_normal((M * N, M * N)), rng.standard_normal((M, N))

    def f(x):
        return x.reshape(-1) @ matrix @ x.reshape(-1) + np.sum(vector * x)

    return Problem((f, x, rng.uniform(0.05, 0.2)), (complex_step(f, x),))


def make_analytic(rng, given):
    """An analytic f, with a constant that drowns every difference."""
    x, a, b = (rng.standard_normal((M, N)) for _ in range(3))

    def f(x):
        return np.sum(a * np.exp(x) * np.sin(x)) + np.sum(b * x**3) * np.sum(a * x) + CONSTANT

    return Problem((f, x), (complex_step(f, x),))


def one_sided(f, x, h):
    """From x itself to x + h."""
    gradient = np.zeros(x.shape)
    for i in np.ndindex(*x.shape):
        moved = x.copy()
        moved[i] += h
        gradient[i] = (f(moved) - f(x)) / h
    return gradient


def divided_by_h(f, x, h):
    """The two points are 2h apart."""
    gradient = np.zeros(x.shape)
    for i in np.ndindex(*x.shape):
        step = np.zeros(x.shape)
        step[i] = h
        gradient[i] = (f(x + step) - f(x - step)) / h
    return gradient


def all_at_once(f, x, h):
    """x + h moves every entry."""
    gradient = np.zeros(x.shape)
    for i in np.ndindex(*x.shape):
        gradient[i] = (f(x + h) - f(x - h)) / (2 * h)
    return gradient


def row_by_row(f, x, h):
    """A loop over len(x) alone."""
    gradient = np.zeros(x.shape)
    for i in range(len(x)):
        above, below = x.copy(), x.copy()
        above[i] += h
        below[i] -= h
        gradient[i] = (f(above) - f(below)) / (2 * h)
    return gradient


def never_put_back(f, x, h):
    """Each entry stays at x - h."""
    gradient, moved = np.zeros(x.shape), x.copy()
    for i in np.ndindex(*x.shape):
        moved[i] += h
        above = f(moved)
        moved[i] -= 2 * h
        gradient[i] = (above - f(moved)) / (2 * h)
    return gradient


def not_divided(f, x):
    """The imaginary part as it is."""
    gradient = np.zeros(x.shape)
    for i in np.ndindex(*x.shape):
        z = x.astype(complex)
        z[i] += 1e-30j
        gradient[i] = f(z).imag
    return gradient


def real_part(f, x):
    """The real part, over the step."""
    gradient = np.zeros(x.shape)
    for i in np.ndindex(*x.shape):
        z = x.astype(complex)
        z[i] += 1e-30j
        gradient[i] = f(z).real / 1e-30
    return gradient


def real_difference(f, x):
    """A one-sided difference with an imaginary step, and its real part."""
    gradient = np.zeros(x.shape)
    for i in np.ndindex(*x.shape):
        z = x.astype(complex)
        z[i] += 1e-30j
        gradient[i] = (f(z) - f(x)).real / 1e-30
    return gradient


def central(f, x):
    """A two-sided difference along the real line."""
    gradient = np.zeros(x.shape)
    for i in np.ndindex(*x.shape):
        step = np.zeros(x.shape)
        step[i] = 6e-6
        gradient[i] = (f(x + step) - f(x - step)) / (2 * 6e-6)
    return gradient


def complex_all_at_once(f, x):
    """x + ih moves every entry."""
    gradient = np.zeros(x.shape)
    for i in np.ndindex(*x.shape):
        gradient[i] = f(x + 1e-30j).imag / 1e-30
    return gradient


def complex_never_put_back(f, x):
    """One complex copy for all entries."""
    gradient, z = np.zeros(x.shape), x.astype(complex)
    for i in np.ndindex(*x.shape):
        z[i] += 1e-30j
        gradient[i] = f(z).imag / 1e-30
    return gradient


CENTRAL_MISTAKES = (
    Mistake(
        "the difference is one-sided",
        "Which of the terms of Taylor's series goes if you step to both sides, and stays if you step to one?",
        one_sided,
    ),
    Mistake("it is divided by h", "How far are x + h and x − h apart?", divided_by_h),
    Mistake(
        "all entries of x are moved at once",
        "The number is the same for every entry. If two entries move, how can you tell whose doing the change was?",
        all_at_once,
    ),
    Mistake(
        "whole rows of x are moved at once",
        "x has two axes. Over what does `for i in range(len(x))` go, and what is x[i]?",
        row_by_row,
    ),
    Mistake(
        "an entry that was moved is not put back",
        "The first entry is right and the later ones are not. Where is the first entry while the second is tried?",
        never_put_back,
    ),
)

COMPLEX_MISTAKES = (
    Mistake(
        "the imaginary part is not divided by the step",
        "Your numbers are all tiny. By how much did you move x, and what is change over step?",
        not_divided,
    ),
    Mistake(
        "the real part of f is taken",
        "In f(x + ih) = f + ih f' − ..., which part holds f and which holds its derivative?",
        real_part,
    ),
    Mistake(
        "the imaginary part is lost: kept in a real array, or the real part of a difference is taken",
        "The step is imaginary. Is your copy of x complex, and in which part of f(x + ih) does the step show?",
        real_difference,
    ),
    Mistake(
        "it is a difference along the real line",
        "This f is large, and a difference of two large numbers has lost its digits. Where is the imaginary step?",
        central,
    ),
    Mistake(
        "all entries of x are moved at once",
        "The number is the same for every entry. x + 1e-30j adds to how many entries?",
        complex_all_at_once,
    ),
    Mistake(
        "an entry that was moved is not put back",
        "Does each entry begin with a fresh copy of x, or with one in which the entries before it have moved already?",
        complex_never_put_back,
    ),
)

DERIVATIVES = Exercise(
    name="01_derivatives",
    see="lesson 01, parts 1 to 3",
    hints=(
        "A gradient has one number for each entry of x. What must stay where it is while one of them is tried?",
        "Two-sided: two calls of f an entry. Complex: one call, and the change sits in the part that was 0 before.",
        "gradient[i] = (number − number) / (the way between);  gradient[i] = (a part of one complex number) / step",
    ),
    tasks=(
        Task("central_difference", (Output("gradient", "MN"),), make_quadratic, CENTRAL_MISTAKES),
        Task("complex_step", (Output("gradient", "MN"),), make_analytic, COMPLEX_MISTAKES),
    ),
)

EXERCISES = (DERIVATIVES,)

"""The problems that 13_noam is tried on, its hints, and the mistakes that are known."""

import math

import numpy as np

from minitransformer.exercises import Exercise, Mistake, Output, Problem, Replacement, Task
from minitransformer.exercises.problems import sizes
from minitransformer.training import noam

SIZES = sizes("steps d_model w", (7, 437, 42), (9, 64, 9), (1, 1, 1), (1, 300, 4000))


def make_noam(rng, given, steps, d_model, w):
    """Steps before, at and after the end of the warm-up."""
    factor = float(rng.uniform(1.5, 4))
    s = np.array([max(1, w // 2), 1, max(1, w - 1), w, w + 1, 3 * w, 20 * w, 7 * w, 30 * w])[:steps]
    expected = np.array([noam(step, d_model, w, factor) for step in s.tolist()])
    ratios = {"factor": factor, "d_model": d_model, "sqrt(d_model)": math.sqrt(d_model), "w": w, "sqrt(w)": w**0.5}
    places = {"during the warm-up": {"lr": s < w}, "from step w on": {"lr": s >= w}}
    return Problem((s, d_model, w, factor), (expected,), ratios=ratios, places=places)


def adapt_noam(mine):
    """The learner's noam as the library calls its own, for one step."""

    def rate(step, d_model, warmup=4000, factor=1.0):
        return float(np.reshape(mine(np.array([step]), d_model, warmup, factor), -1)[0])

    return rate


EXERCISE = Exercise(
    name="13_noam",
    see='lesson 13, "The Noam schedule"',
    replaces={"noam": Replacement(noam, adapt_noam)},
    hints=(
        "At which step is the rate to be largest? What are the two branches there?",
        "The straight line goes through 0 and meets the root at s = w: that tells its slope. Before w the line is "
        "the lower one of the two. In front stand two numbers that know nothing of s.",
        "(S,) = number · number · the lower one of (S,) and (S,): a power of s, and s times a power of w",
    ),
    tasks=(
        Task(
            function="noam",
            outputs=(Output("lr", "S"),),
            make=make_noam,
            sizes=SIZES,
            mistakes=(
                Mistake(
                    "the larger branch is taken, not the smaller",
                    "What is s^−0.5 at the first step, and is the warm-up not there to avoid just that?",
                    {"minimum": "maximum"},
                ),
                Mistake(
                    "steps are counted from 0",
                    "The s that comes in counts from 1 already. Where is the peak with what you do to it?",
                    {"    return": "    s = s + 1\n    return"},
                ),
                Mistake(
                    "the warm-up rises to 1, and does not meet the root at w",
                    "What are your two branches at s = w? Are they the same number there?",
                    {"s * w**-1.5": "s / w"},
                ),
                Mistake(
                    "the slope of the warm-up is w to the power of −0.5",
                    "Where do your two branches meet? At s = w, which power of w makes s·w^a the same as s^−0.5?",
                    {"w**-1.5": "w**-0.5"},
                ),
                Mistake(
                    "the warm-up always has the paper's 4000 steps",
                    "4000 is what w is if nobody says otherwise. And if somebody does?",
                    {"w**-1.5": "4000**-1.5"},
                ),
                Mistake(
                    "d_model has the wrong exponent",
                    "In a wider model more changes pull together. Is its rate to be larger, or smaller?",
                    {"d_model**-0.5": "d_model**0.5"},
                ),
                Mistake("the factor is missing", 'Somebody trains "with lr = 2". Where is the 2?', {"factor * ": ""}),
                Mistake(
                    "the rate stays at the peak",
                    "Which of the two branches holds after w steps, and does it know s?",
                    {"s**-0.5": "w**-0.5"},
                ),
            ),
        ),
    ),
)

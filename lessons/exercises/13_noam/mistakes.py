"""The problems, the hints and the known mistakes of 13_noam."""

import math

import numpy as np
from exercise_problems import sizes

from minitransformer.exercises import Exercise, Mistake, Output, Problem, Replacement, Task
from minitransformer.training import noam

SIZES = sizes("steps C warmup", (7, 437, 42), (9, 64, 9), (1, 1, 1), (1, 300, 4000))


def make_noam(rng, given, steps, C, warmup):
    """Steps before, at and after the end of the warm-up."""
    factor, before = float(rng.uniform(1.5, 4)), [max(1, warmup // 2), 1, max(1, warmup - 1)]
    step = np.array([*before, warmup, warmup + 1, 3 * warmup, 20 * warmup, 7 * warmup, 30 * warmup])[:steps]
    expected = np.array([noam(one, C, warmup, factor) for one in step.tolist()])
    ratios = {"factor": factor, "C": C, "sqrt(C)": math.sqrt(C), "warmup": warmup, "sqrt(warmup)": math.sqrt(warmup)}
    places = {"during the warm-up": {"lr": step < warmup}, "from the end of the warm-up on": {"lr": step >= warmup}}
    return Problem((step, C, warmup, factor), (expected,), ratios=ratios, places=places)


def adapt_noam(mine):
    """The learner's noam as the library calls its own, for one step."""

    def rate(step, d_model, warmup=4000, factor=1.0):
        return float(np.reshape(mine(np.array([step]), d_model, warmup, factor), -1)[0])

    return rate


EXERCISE = Exercise(
    name="13_noam",
    replaces={"noam": Replacement(noam, adapt_noam)},
    hints=(
        "At which step should the rate be largest? What are the two branches there?",
        "The straight line goes through 0 and meets the root at step = warmup, which gives its slope. During the "
        "warm-up the line is the lower branch. The two factors in front do not depend on the step.",
        "an array = number · number · the lower of two arrays: a power of step, and step times a power of warmup",
    ),
    tasks=(
        Task(
            function="noam",
            outputs=(Output("lr", ("step",)),),
            make=make_noam,
            sizes=SIZES,
            mistakes=(
                Mistake("larger-branch-taken-not-smaller", {"minimum": "maximum"}),
                Mistake("steps-counted-0", {"    return": "    step = step + 1\n    return"}),
                Mistake("warm-up-rises-1-does", {"step * warmup**-1.5": "step / warmup"}),
                Mistake("slope-warm-up-warmup-minus0", {"warmup**-1.5": "warmup**-0.5"}),
                Mistake("warm-up-always-papers-4000", {"warmup**-1.5": "4000**-1.5"}),
                Mistake("c-wrong-exponent", {"C**-0.5": "C**0.5"}),
                Mistake("factor-missing", {"factor * ": ""}),
                Mistake("rate-stays-peak", {"step**-0.5": "warmup**-0.5"}),
            ),
        ),
    ),
)

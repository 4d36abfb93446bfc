"""The problems, the hints and the known mistakes of 03_softmax_backward."""

import numpy as np
from exercise_problems import backward_problem, each_row_sums_to_zero, sizes

from minitransformer.exercises import Exercise, Invariant, Mistake, Output, Replacement, Task
from minitransformer.functional import softmax_backward

SIZES = sizes("N V", (6, 5), (3, 7), (1, 1))


def make_softmax(rng, given, N, V):
    """Logits of order one."""
    return backward_problem(given.softmax, {"z": rng.standard_normal((N, V))}, ("z",), rng)


def adapt_softmax(mine):
    """The learner's softmax_backward(dp, p), of rows, as the library calls its own."""

    def backward(dp, p):
        S = p.shape[-1]
        return np.asarray(mine(dp.reshape(-1, S), p.reshape(-1, S)), dp.dtype).reshape(p.shape)

    return backward


EXERCISE = Exercise(
    name="03_softmax_backward",
    hints=(
        "Raise one logit of a row. Which entries of p grow, and which shrink? Can any of them stay the same?",
        "p_i depends on z_j in two ways: through its own exponential, if i = j, and through the sum that all "
        "entries share.",
        "dz = p ∘ (dp − one number for each row). This number (N, 1) is a weighted mean of the row of dp",
    ),
    tasks=(
        Task(
            function="softmax_backward",
            forward="softmax",
            outputs=(Output("dz", "NV"),),
            make=make_softmax,
            sizes=SIZES,
            linear=True,
            invariants=(
                Invariant(
                    "each row of dz sums to 0: adding one number to all logits of a row changes no probability",
                    each_row_sums_to_zero,
                ),
            ),
            mistakes=(
                Mistake("softmax-entry-by-entry", {"(p * dp).sum(axis=-1, keepdims=True)": "p * dp"}),
                Mistake("average-forgotten", {" - (p * dp).sum(axis=-1, keepdims=True)": ""}),
                Mistake("average-unweighted", {"(p * dp).sum": "dp.mean"}),
                Mistake("prices-summed-unweighted", {"(p * dp).sum": "dp.sum"}),
                Mistake("average-divided-again", {"sum": "mean"}),
                Mistake("average-over-rows", {"axis=-1": "axis=0"}),
                Mistake("softmax-factor-missing", {"p * (dp -": "(dp -"}),
            ),
        ),
    ),
    replaces={"softmax_backward": Replacement(softmax_backward, adapt_softmax)},
)

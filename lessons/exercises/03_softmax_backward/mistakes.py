"""The problems, the hints and the known mistakes of 03_softmax_backward."""

import numpy as np

from minitransformer.exercises import Exercise, Invariant, Mistake, Output, Replacement, Task
from minitransformer.exercises.problems import backward_problem, each_row_sums_to_zero, sizes
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
                Mistake(
                    "the softmax is taken entry by entry, as if it were a sigmoid",
                    "Raise one logit. Do the other probabilities of its row stay as they are?",
                    {"(p * dp).sum(axis=-1, keepdims=True)": "p * dp"},
                ),
                Mistake(
                    "the sum in the denominator is treated as a constant",
                    "z_j is in the denominator, too. What comes back through it?",
                    {" - (p * dp).sum(axis=-1, keepdims=True)": ""},
                ),
                Mistake(
                    "all entries of dp have the same weight in the mean",
                    "Which weights sum to 1 in each row? And should a token with probability 0 count?",
                    {"(p * dp).sum": "dp.mean"},
                ),
                Mistake(
                    "dp is summed without the weights p",
                    "Follow z_j through the denominator to the loss. How often do you meet p on this path: once or "
                    "twice?",
                    {"(p * dp).sum": "dp.sum"},
                ),
                Mistake(
                    "the products p dp are averaged, not summed",
                    "The weights p sum to 1 already. What does another division by V do?",
                    {"sum": "mean"},
                ),
                Mistake(
                    "the sum runs over the rows",
                    "Along which axis do the probabilities sum to 1?",
                    {"axis=-1": "axis=0"},
                ),
                Mistake(
                    "the factor p in front is missing",
                    "If a token's probability is nearly 0, how much can its own logit change it?",
                    {"p * (dp -": "(dp -"},
                ),
            ),
        ),
    ),
    replaces={"softmax_backward": Replacement(softmax_backward, adapt_softmax)},
)

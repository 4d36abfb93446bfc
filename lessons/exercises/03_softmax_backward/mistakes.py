"""The problems that 03_softmax_backward is tried on, its hints, and the mistakes that are known."""

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
    see='lesson 03, "One logit moves every probability"',
    hints=(
        "Raise one logit of a row. Which entries of p grow, which shrink, and can any of them stay as it is?",
        "p_i depends on z_j in two ways: by its own exponential, if i = j, and by the sum that all entries share.",
        "dz = p ∘ (dp − one number for each row), where that number (N, 1) is a weighted mean of the row of dp",
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
                    "Raise one logit: do the other probabilities of its row stay as they are?",
                    {"(p * dp).sum(axis=-1, keepdims=True)": "p * dp"},
                ),
                Mistake(
                    "the sum that all entries of a row share is taken for a constant",
                    "z_j stands in the denominator too. What comes back through there?",
                    {" - (p * dp).sum(axis=-1, keepdims=True)": ""},
                ),
                Mistake(
                    "all entries of dp have the same weight in the mean",
                    "Which weights sum to 1 in each row, and should a token of probability 0 have a say?",
                    {"(p * dp).sum": "dp.mean"},
                ),
                Mistake(
                    "the sum is that of dp, without the weights p",
                    "Which way leads from z_j through the sum to the loss, and does p stand on it once or twice?",
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
                    "How much can the probability of a token move by its own logit, if it is nearly 0?",
                    {"p * (dp -": "(dp -"},
                ),
            ),
        ),
    ),
    replaces={"softmax_backward": Replacement(softmax_backward, adapt_softmax)},
)

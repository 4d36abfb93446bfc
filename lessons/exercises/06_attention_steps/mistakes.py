"""The problems, the hints and the known mistakes of 06_attention_steps."""

import math

import numpy as np

from minitransformer.exercises import Exercise, Invariant, Mistake, Output, Task
from minitransformer.exercises.problems import backward_problem, sizes

MEAN_SIZES = sizes("B T S width", (2, 3, 4, 6), (3, 5, 2, 4), (1, 1, 1, 1))
SOFTMAX_SIZES = sizes("B T S", (2, 3, 4), (3, 5, 2), (1, 1, 1))
SCORES_SIZES = sizes("B T S D", (2, 3, 4, 5), (3, 5, 2, 6), (1, 1, 1, 1))


def make_weighted_mean(rng, given, B, T, S, width):
    """Weights as a softmax makes them; values of order one."""
    p, _ = given.softmax(rng.standard_normal((B, T, S)))
    inputs = {"p": p, "v": rng.standard_normal((B, S, width))}
    return backward_problem(given.weighted_mean, inputs, ("p", "v"), rng)


def make_softmax(rng, given, B, T, S):
    """Scores of order one."""
    return backward_problem(given.softmax, {"s": rng.standard_normal((B, T, S))}, ("s",), rng)


def make_scores(rng, given, B, T, S, D):
    """Queries and keys of order one. The rows of ds do not sum to 0, because this step does not need it."""
    inputs = {"q": rng.standard_normal((B, T, D)), "k": rng.standard_normal((B, S, D))}
    return backward_problem(given.scores, inputs, ("q", "k"), rng, ratios={"sqrt(D)": math.sqrt(D), "D": D})


MEAN_MISTAKES = (
    Mistake(
        "dv is made with a reshape of p, not with its transpose",
        "A reshape keeps the numbers in the order of memory. Does your entry (j, t) belong to query t and key j?",
        {"p.swapaxes(-1, -2)": "p.reshape(len(p), p.shape[2], p.shape[1])"},
    ),
    Mistake(
        "every query counts fully in dv",
        "If a query gives a value the weight 0, does its answer depend on this value?",
        {"p.swapaxes": "np.ones_like(p).swapaxes"},
    ),
    Mistake(
        "dv is averaged over the queries",
        "Two queries read the same value. Is its gradient the sum of what the two send back, or their mean?",
        {"return dp, dv": "return dp, dv / do.shape[1]"},
    ),
    Mistake(
        "dp has an extra factor p",
        "o is linear in p. Can the derivative of a linear function depend on p?",
        {"return dp": "return p * dp"},
    ),
    Mistake(
        "dp and dv are returned in the wrong order",
        "Which of the two comes first in the docstring?",
        {"return dp, dv": "return dv, dp"},
    ),
)

SOFTMAX_MISTAKES = (
    Mistake(
        "the softmax is taken entry by entry",
        "Raise one score. Do the other weights of its row stay as they are?",
        {"(dp * p).sum(axis=-1, keepdims=True)": "dp * p"},
    ),
    Mistake(
        "the average of dp is forgotten",
        "If all keys of a row have the same price, is there any reason to move a score? What does your formula say?",
        {" - (dp * p).sum(axis=-1, keepdims=True)": ""},
    ),
    Mistake(
        "the average of dp counts all keys alike",
        "Suppose that a query does not look at a key at all. Should the price of this key count in what the query "
        "pays?",
        {"(dp * p).sum": "dp.mean"},
    ),
    Mistake(
        "the average of dp is taken over the queries",
        "Along which axis do the weights sum to 1?",
        {"axis=-1": "axis=-2"},
    ),
    Mistake(
        "there is one average of dp for all rows",
        "Does a row of the softmax know about the other rows? Which axis, with keepdims, keeps them apart?",
        {"axis=-1, keepdims=True": ""},
    ),
    Mistake(
        "the sum of dp is subtracted, not its weighted mean",
        "What comes back through the denominator is an average. Which weights does it have?",
        {"(dp * p).sum": "dp.sum"},
    ),
    Mistake(
        "p multiplies dp, but not the average that is subtracted",
        "Here you subtract the same number from all entries of a row. Does your row of ds sum to 0?",
        {"p * (dp - (dp * p).sum(axis=-1, keepdims=True))": "p * dp - (dp * p).sum(axis=-1, keepdims=True)"},
    ),
)

SCORES_MISTAKES = (
    Mistake(
        "the scale of the scores is missing",
        "The forward divides the scores by √D. What does the chain rule say about a constant factor?",
        {" / math.sqrt(q.shape[-1])": ""},
    ),
    Mistake(
        "ds is divided by D instead of √D",
        "Which number does the forward divide by? Why should it be another one on the way back?",
        {"math.sqrt(q.shape[-1])": "q.shape[-1]"},
    ),
    Mistake(
        "the scale is in dq, but not in dk",
        "A score is q·k / √D. What is divided: q, or the product of both?",
        {"dproduct.swapaxes": "ds.swapaxes"},
    ),
    Mistake(
        "dk is made with a reshape of ds, not with its transpose",
        "A reshape keeps the numbers in the order of memory. Does your entry (j, t) belong to query t and key j?",
        {"swapaxes(-1, -2)": "reshape(len(q), k.shape[1], q.shape[1])"},
    ),
    Mistake(
        "dq and dk are returned in the wrong order",
        "Which of the two comes first in the docstring?",
        {"dproduct @ k, dproduct.swapaxes(-1, -2) @ q": "dproduct.swapaxes(-1, -2) @ q, dproduct @ k"},
    ),
)

EXERCISE = Exercise(
    name="06_attention_steps",
    hints=(
        "Ask of each step: which outputs does one entry of this input reach, and with which factor?",
        "All queries read a value, and all queries are compared with a key: two sums over T. A score moves all "
        "weights of its row.",
        "dp (T, S) = (T, width) (width, S);  dv (S, width) = (S, T) (T, width);  ds = p ∘ (dp − a number for each "
        "row);  dq (T, D) = (T, S) (S, D) / number;  dk (S, D) = (S, T) (T, D) / number",
    ),
    tasks=(
        Task(
            function="weighted_mean_backward",
            forward="weighted_mean",
            outputs=(Output("dp", "BTS"), Output("dv", ("B", "S", "width"))),
            make=make_weighted_mean,
            sizes=MEAN_SIZES,
            linear=True,
            mistakes=MEAN_MISTAKES,
        ),
        Task(
            function="softmax_backward",
            forward="softmax",
            outputs=(Output("ds", "BTS"),),
            make=make_softmax,
            sizes=SOFTMAX_SIZES,
            linear=True,
            invariants=(
                Invariant(
                    "each row of ds sums to 0: what one key gains, the others lose",
                    lambda outputs, problem: np.abs(outputs[0].sum(axis=-1)).max() < 1e-9,
                ),
            ),
            mistakes=SOFTMAX_MISTAKES,
        ),
        Task(
            function="scores_backward",
            forward="scores",
            outputs=(Output("dq", "BTD"), Output("dk", "BSD")),
            make=make_scores,
            sizes=SCORES_SIZES,
            linear=True,
            mistakes=SCORES_MISTAKES,
        ),
    ),
)

"""The problems that 06_attention_steps is tried on, its hints, and the mistakes that are known."""

import math

import numpy as np

from minitransformer.exercises import Exercise, Invariant, Mistake, Output, Task
from minitransformer.exercises.problems import backward_problem, sizes

MEAN_SIZES = sizes("B T S E", (2, 3, 4, 6), (3, 5, 2, 4), (1, 1, 1, 1))
SOFTMAX_SIZES = sizes("B T S", (2, 3, 4), (3, 5, 2), (1, 1, 1))
SCORES_SIZES = sizes("B T S D", (2, 3, 4, 5), (3, 5, 2, 6), (1, 1, 1, 1))


def make_weighted_mean(rng, given, B, T, S, E):
    """Weights as a softmax makes them; values of order one."""
    p, _ = given.softmax(rng.standard_normal((B, T, S)))
    inputs = {"p": p, "v": rng.standard_normal((B, S, E))}
    return backward_problem(given.weighted_mean, inputs, ("p", "v"), rng)


def make_softmax(rng, given, B, T, S):
    """Scores of order one."""
    return backward_problem(given.softmax, {"s": rng.standard_normal((B, T, S))}, ("s",), rng)


def make_scores(rng, given, B, T, S, D):
    """Queries and keys of order one; ds with row sums that are not 0, for this step does not need them to be."""
    inputs = {"q": rng.standard_normal((B, T, D)), "k": rng.standard_normal((B, S, D))}
    return backward_problem(given.scores, inputs, ("q", "k"), rng, ratios={"sqrt(d_k)": math.sqrt(D), "d_k": D})


MEAN_MISTAKES = (
    Mistake(
        "dv is made with a reshape of p, not with its transpose",
        "A reshape keeps the numbers in the order of memory. Is entry (s, t) of yours the weight of query t on key s?",
        {"p.swapaxes(-1, -2)": "p.reshape(len(p), p.shape[2], p.shape[1])"},
    ),
    Mistake(
        "every query counts fully in dv",
        "If a query gave a value the weight 0, can the loss at this query depend on the value?",
        {"p.swapaxes": "np.ones_like(p).swapaxes"},
    ),
    Mistake(
        "dv is averaged over the queries",
        "Two queries read one value. Does the loss change by the sum or by the mean of what each of them feels?",
        {"return dp, dv": "return dp, dv / do.shape[1]"},
    ),
    Mistake(
        "dp has a factor p too many",
        "o is linear in p. Can the derivative of a linear function depend on where you are?",
        {"return dp": "return p * dp"},
    ),
    Mistake(
        "dp and dv are returned in the wrong order",
        "What does the docstring say comes first?",
        {"return dp, dv": "return dv, dp"},
    ),
)

SOFTMAX_MISTAKES = (
    Mistake(
        "the softmax is taken entry by entry",
        "Raise one score: do the other weights of its row stay as they are?",
        {"(dp * p).sum(axis=-1, keepdims=True)": "dp * p"},
    ),
    Mistake(
        "the average of dp is forgotten",
        "If all keys of a row cost the same, is there any reason to move a score? What does yours say?",
        {" - (dp * p).sum(axis=-1, keepdims=True)": ""},
    ),
    Mistake(
        "the average of dp counts all keys alike",
        "A key that nobody looks at: does its cost belong in the average of what the query attends to?",
        {"(dp * p).sum": "dp.mean"},
    ),
    Mistake(
        "the average of dp is taken over the queries",
        "Along which axis do the weights sum to 1?",
        {"axis=-1": "axis=-2"},
    ),
    Mistake(
        "there is one average of dp for all rows",
        "Do the rows of the softmax know of each other? Which axis, and which keepdims, keeps them apart?",
        {"axis=-1, keepdims=True": ""},
    ),
    Mistake(
        "what is taken off is the sum of dp, not its weighted mean",
        "What comes back through the denominator is an average. Which weights does it have?",
        {"(dp * p).sum": "dp.sum"},
    ),
    Mistake(
        "p multiplies dp, but not the average that is taken off",
        "Each entry of a row loses the same here. Does adding up the row give 0, as it must?",
        {"p * (dp - (dp * p).sum(axis=-1, keepdims=True))": "p * dp - (dp * p).sum(axis=-1, keepdims=True)"},
    ),
)

SCORES_MISTAKES = (
    Mistake(
        "the scale of the scores is missing",
        "The forward divides the scores by √d_k. What does the chain rule say about a constant factor?",
        {" / math.sqrt(q.shape[-1])": ""},
    ),
    Mistake(
        "it is divided by d_k and not by its root",
        "By which number does the forward divide? Backward, is it another one, or applied twice?",
        {"math.sqrt(q.shape[-1])": "q.shape[-1]"},
    ),
    Mistake(
        "the scale is in dq, but not in dk",
        "A score is q·k / √d_k. Which of the two is the divided one?",
        {"dr.swapaxes": "ds.swapaxes"},
    ),
    Mistake(
        "dk is made with a reshape of ds, not with its transpose",
        "A reshape keeps the numbers in the order of memory. Is entry (s, t) of yours that of query t and key s?",
        {"swapaxes(-1, -2)": "reshape(len(q), k.shape[1], q.shape[1])"},
    ),
    Mistake(
        "dq and dk are returned in the wrong order",
        "What does the docstring say comes first?",
        {"dr @ k, dr.swapaxes(-1, -2) @ q": "dr.swapaxes(-1, -2) @ q, dr @ k"},
    ),
)

EXERCISE = Exercise(
    name="06_attention_steps",
    see="lesson 06",
    hints=(
        "Of each step ask: which outputs does one entry of this input reach, and with which factor?",
        "A value is read by all queries and a key is scored by all: sums over T. A weight feels all scores of its row.",
        "dp (T, S) = (T, E) (E, S);  dv (S, E) = (S, T) (T, E);  ds = p ∘ (dp − a number a row);  "
        "dq (T, D) = (T, S) (S, D) / number;  dk (S, D) = (S, T) (T, D) / number",
    ),
    tasks=(
        Task(
            function="weighted_mean_backward",
            forward="weighted_mean",
            outputs=(Output("dp", "BTS"), Output("dv", "BSE")),
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

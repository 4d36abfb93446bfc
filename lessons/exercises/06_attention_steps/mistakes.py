"""The problems, the hints and the known mistakes of 06_attention_steps."""

import math

import numpy as np
from exercise_problems import backward_problem, sizes

from minitransformer.exercises import Exercise, Invariant, Mistake, Output, Task

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
    Mistake("p-reshaped", {"p.swapaxes(-1, -2)": "p.reshape(len(p), p.shape[2], p.shape[1])"}),
    Mistake("every-query-counts-fully", {"p.swapaxes": "np.ones_like(p).swapaxes"}),
    Mistake("dv-averaged-over-queries", {"return dp, dv": "return dp, dv / do.shape[1]"}),
    Mistake("dp-times-p", {"return dp": "return p * dp"}),
    Mistake("wrong-order-returned", {"return dp, dv": "return dv, dp"}),
)

SOFTMAX_MISTAKES = (
    Mistake("softmax-entry-by-entry", {"(dp * p).sum(axis=-1, keepdims=True)": "dp * p"}),
    Mistake("average-forgotten", {" - (dp * p).sum(axis=-1, keepdims=True)": ""}),
    Mistake("average-unweighted", {"(dp * p).sum": "dp.mean"}),
    Mistake("average-over-rows", {"axis=-1": "axis=-2"}),
    Mistake("one-average-for-all", {"axis=-1, keepdims=True": ""}),
    Mistake("prices-summed-unweighted", {"(dp * p).sum": "dp.sum"}),
    Mistake(
        "average-without-factor",
        {"p * (dp - (dp * p).sum(axis=-1, keepdims=True))": "p * dp - (dp * p).sum(axis=-1, keepdims=True)"},
    ),
)

SCORES_MISTAKES = (
    Mistake("no-scale-backward", {" / math.sqrt(q.shape[-1])": ""}),
    Mistake("divided-by-D", {"math.sqrt(q.shape[-1])": "q.shape[-1]"}),
    Mistake("scale-in-dq-only", {"dproduct.swapaxes": "ds.swapaxes"}),
    Mistake("keys-reshaped", {"swapaxes(-1, -2)": "reshape(len(q), k.shape[1], q.shape[1])"}),
    Mistake(
        "wrong-order-returned",
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

"""The problem, the hints and the known mistakes of 19_grouped_heads_backward."""

import math

import numpy as np

from minitransformer.exercises import Exercise, Invariant, Mistake, Output, Task
from minitransformer.exercises.problems import backward_problem, sizes

SIZES = sizes(
    "B H G T S D width", (2, 6, 3, 4, 5, 7, 8), (3, 4, 2, 3, 4, 5, 6), (2, 3, 1, 1, 2, 1, 1), (1, 1, 1, 2, 1, 2, 2)
)


def make_grouped(rng, given, B, H, G, T, S, D, width):
    """Everything of order one."""
    inputs = {
        "q": rng.standard_normal((B, H, T, D)),
        "k": rng.standard_normal((B, G, S, D)),
        "v": rng.standard_normal((B, G, S, width)),
    }
    ratios = {"sqrt(D)": math.sqrt(D), "H / G": H / G, "G": G, "H": H}
    return backward_problem(given.grouped_attention, inputs, ("q", "k", "v"), rng, ratios=ratios)


def keys_sum_to_zero(outputs, problem):
    """Whether the gradients of all keys of a head sum to 0."""
    return bool(np.abs(outputs[1].sum(axis=2)).max() < 1e-9)


MISTAKES = (
    Mistake(
        "dk is not summed over the group",
        "A shared key is read by all heads of its group. Do you hear all of them, or the first one alone?",
        {"sum_groups(dk, G)": "dk[:, ::group]"},
    ),
    Mistake(
        "dv is not summed over the group",
        "A shared value is read by all heads of its group. Do you hear all of them, or the first one alone?",
        {"sum_groups(dv, G)": "dv[:, ::group]"},
    ),
    Mistake(
        "neither dk nor dv is summed over the group",
        "A copy is made for each head of the group. What becomes of the gradients of the copies?",
        {"sum_groups(dk, G)": "dk[:, ::group]", "sum_groups(dv, G)": "dv[:, ::group]"},
    ),
    Mistake(
        "each head of a group writes over the share of the one before",
        "Does your loop assign (=) where it should add (+=)? What do the other heads of the group say?",
        {".sum(axis=2)": "[:, :, -1]"},
    ),
    Mistake(
        "dk and dv are averaged over the group",
        "If a number is used three times, is its gradient the sum of three terms, or their mean?",
        {".sum(axis=2)": ".mean(axis=2)"},
    ),
    Mistake(
        "the heads of a group are taken at a distance of G, and not in a row",
        "Head h looks at the head h // (H/G) of the keys. Which heads look at the first one?",
        {"reshape(B, G, H // G, S, width).sum(axis=2)": "reshape(B, H // G, G, S, width).sum(axis=1)"},
    ),
    Mistake(
        "every head of keys gets the gradient of all groups",
        "May a key hear from a head of queries that never looked at it?",
        {"reshape(B, G, H // G, S, width).sum(axis=2)": "sum(axis=1, keepdims=True).repeat(G, axis=1)"},
    ),
    Mistake(
        "the copies are made in another order than in the forward",
        "repeat gives 0 0 0 1 1 1, and tile gives 0 1 0 1 0 1. Which one does the forward use?",
        {
            "np.repeat(k, group, axis=1)": "np.tile(k, (1, group, 1, 1))",
            "np.repeat(v, group, axis=1)": "np.tile(v, (1, group, 1, 1))",
        },
    ),
    Mistake(
        "the scale of the scores is missing",
        "The forward divides the scores by √D. What does the chain rule say about a constant factor?",
        {" / math.sqrt(q.shape[-1])": ""},
    ),
    Mistake(
        "the average of dp is forgotten",
        "If all keys of a row have the same price, is there any reason to move a score? What does your formula say?",
        {"(dp - (dp * p).sum(axis=-1, keepdims=True))": "dp"},
    ),
)

EXERCISE = Exercise(
    name="19_grouped_heads_backward",
    hints=(
        "Suppose that each head had keys and values of its own, which only happen to be equal. What would their "
        "gradients be?",
        "dq needs the copies, and nothing more. dk and dv come out once for each head of queries, and there are only "
        "G heads to give them to.",
        "dk of the copies (B, H, S, D) = dsᵀ q as in lesson 06, seen as (B, G, H/G, S, D), and then one axis less;  "
        "dv in the same way",
    ),
    tasks=(
        Task(
            function="grouped_attention_backward",
            forward="grouped_attention",
            outputs=(Output("dq", "BHTD"), Output("dk", "BGSD"), Output("dv", ("B", "G", "S", "width"))),
            make=make_grouped,
            sizes=SIZES,
            linear=True,
            invariants=(Invariant("the gradients of the keys of a head sum to 0, as in lesson 06", keys_sum_to_zero),),
            mistakes=MISTAKES,
        ),
    ),
)

"""The problem, the hints and the known mistakes of 19_grouped_heads_backward."""

import math

import numpy as np
from exercise_problems import backward_problem, sizes

from minitransformer.exercises import Exercise, Invariant, Mistake, Output, Task

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
    Mistake("dk-not-summed-over-group", {"sum_groups(dk, G)": "dk[:, ::group]"}),
    Mistake("dv-not-summed-over-group", {"sum_groups(dv, G)": "dv[:, ::group]"}),
    Mistake("neither-dk-nor-dv-summed", {"sum_groups(dk, G)": "dk[:, ::group]", "sum_groups(dv, G)": "dv[:, ::group]"}),
    Mistake("each-head-group-writes", {".sum(axis=2)": "[:, :, -1]"}),
    Mistake("dk-dv-averaged-over-group", {".sum(axis=2)": ".mean(axis=2)"}),
    Mistake(
        "heads-group-taken-distance-g",
        {"reshape(B, G, H // G, S, width).sum(axis=2)": "reshape(B, H // G, G, S, width).sum(axis=1)"},
    ),
    Mistake(
        "every-head-keys-gets-gradient",
        {"reshape(B, G, H // G, S, width).sum(axis=2)": "sum(axis=1, keepdims=True).repeat(G, axis=1)"},
    ),
    Mistake(
        "copies-made-another-order",
        {
            "np.repeat(k, group, axis=1)": "np.tile(k, (1, group, 1, 1))",
            "np.repeat(v, group, axis=1)": "np.tile(v, (1, group, 1, 1))",
        },
    ),
    Mistake("no-scale-backward", {" / math.sqrt(q.shape[-1])": ""}),
    Mistake("average-forgotten", {"(dp - (dp * p).sum(axis=-1, keepdims=True))": "dp"}),
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

"""The problems, the hints and the known mistakes of 17_additive_attention_backward."""

import numpy as np
from exercise_problems import backward_problem, sizes

from minitransformer.exercises import Exercise, Invariant, Mistake, Output, Task

SIZES = sizes("B T S D width", (2, 3, 4, 5, 6), (3, 5, 2, 6, 4), (1, 1, 1, 1, 1), (2, 1, 3, 2, 1))


def make_attention(rng, given, B, T, S, D, width):
    """Queries and keys of order one, and a scorer that makes the weights of a row differ."""
    inputs = {
        "q": rng.standard_normal((B, T, D)),
        "k": rng.standard_normal((B, S, D)),
        "v": rng.standard_normal((B, S, width)),
        "scorer": rng.standard_normal(D),
    }
    return backward_problem(
        given.additive_attention, inputs, ("q", "k", "v", "scorer"), rng, ratios={"sqrt(D)": np.sqrt(D)}
    )


def moves_together(outputs, problem):
    """Whether the gradients of all queries sum to those of all keys: only their sums enter."""
    dq, dk = outputs[:2]
    return bool(np.abs(dq.sum(axis=1) - dk.sum(axis=1)).max() < 1e-9)


MISTAKES = (
    Mistake(
        "derivative-tanh-taken-after-sums",
        {
            "dsum = dmatch * (1 - match**2)": "dsum = dmatch",
            "dsum.sum(axis=2), dsum.sum(axis=1)": (
                "dsum.sum(axis=2) * (1 - match.mean(axis=2) ** 2), dsum.sum(axis=1) * (1 - match.mean(axis=1) ** 2)"
            ),
        },
    ),
    Mistake("tanh-no-derivative", {"dmatch * (1 - match**2)": "dmatch"}),
    Mistake("derivative-tanh-taken-match-been", {"1 - match**2": "1 - np.tanh(match) ** 2"}),
    Mistake("tanh-derivative-sigmoid", {"(1 - match**2)": "match * (1 - match)"}),
    Mistake("scorer-missing-way-q-k", {"ds[..., None] * scorer": "ds[..., None] * np.ones_like(scorer)"}),
    Mistake(
        "gradient-scorer-goes-through-tanh", {"(ds[..., None] * match)": "(ds[..., None] * match * (1 - match**2))"}
    ),
    Mistake("gradient-scorer-scorer-factor", {"(ds[..., None] * match)": "(dmatch * match)"}),
    Mistake("gradient-scorer-averaged-over-pairs", {"(ds[..., None] * match).sum": "(ds[..., None] * match).mean"}),
    Mistake("key-hears-last-query-only", {"dsum.sum(axis=1)": "dsum[:, -1]"}),
    Mistake("gradients-key-averaged-over-queries", {"dsum.sum(axis=1)": "dsum.mean(axis=1)"}),
    Mistake("softmax-entry-by-entry", {"(p * dp).sum(axis=-1, keepdims=True)": "p * dp"}),
    Mistake("average-forgotten", {" - (p * dp).sum(axis=-1, keepdims=True)": ""}),
    Mistake(
        "scores-divided-root-d", {"dp = do @ v.swapaxes(-1, -2)": "dp = do @ v.swapaxes(-1, -2) / np.sqrt(len(scorer))"}
    ),
    Mistake("p-reshaped", {"p.swapaxes(-1, -2) @ do": "p.reshape(len(p), p.shape[2], p.shape[1]) @ do"}),
)

EXERCISE = Exercise(
    name="17_additive_attention_backward",
    hints=(
        "Follow one entry of a key: which sums is it in, and which scores do they reach?",
        "From the scores on, there are three factors for each pair of a query and a key: what came back, the scorer, "
        "and a slope. Which of them does the gradient of the scorer not have? Over which axes does each result sum?",
        "ds (B, T, S) as in lesson 06;  what reaches the sums (B, T, S, D) = ds · scorer · slope;  dq (B, T, D) and dk "
        "(B, S, D) = its sums over one axis each;  dscorer (D,) = a sum over B, T and S",
    ),
    tasks=(
        Task(
            function="additive_attention_backward",
            forward="additive_attention",
            outputs=(
                Output("dq", "BTD"),
                Output("dk", "BSD"),
                Output("dv", ("B", "S", "width")),
                Output("dscorer", "D"),
            ),
            make=make_attention,
            sizes=SIZES,
            linear=True,
            invariants=(Invariant("the gradients of all queries sum to those of all keys", moves_together),),
            mistakes=MISTAKES,
        ),
    ),
)

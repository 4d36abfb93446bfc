"""The problems, the hints and the known mistakes of 17_additive_attention_backward."""

import numpy as np

from minitransformer.exercises import Exercise, Invariant, Mistake, Output, Task
from minitransformer.exercises.problems import backward_problem, sizes

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
        "the derivative of tanh is taken after the sums over keys and queries",
        "Each pair of a query and a key goes through a tanh of its own. Can one slope stand for all pairs of a row?",
        {
            "dsum = dmatch * (1 - match**2)": "dsum = dmatch",
            "dsum.sum(axis=2), dsum.sum(axis=1)": (
                "dsum.sum(axis=2) * (1 - match.mean(axis=2) ** 2), dsum.sum(axis=1) * (1 - match.mean(axis=1) ** 2)"
            ),
        },
    ),
    Mistake(
        "the tanh has no derivative",
        "What happens to a pair whose sum is 10 if the query moves a little? What does your formula say?",
        {"dmatch * (1 - match**2)": "dmatch"},
    ),
    Mistake(
        "the derivative of tanh is taken of match, which has been through tanh already",
        "tanh' is 1 − tanh². The cache holds match. Is that the number before the tanh, or after it?",
        {"1 - match**2": "1 - np.tanh(match) ** 2"},
    ),
    Mistake(
        "tanh has the derivative of a sigmoid",
        "Which function has the slope y (1 − y), and which 1 − y²?",
        {"(1 - match**2)": "match * (1 - match)"},
    ),
    Mistake(
        "the scorer is missing on the way to q and k",
        "A score is Σ_d scorer_d match_d. What is the derivative of a score with respect to match_d?",
        {"ds[..., None] * scorer": "ds[..., None] * np.ones_like(scorer)"},
    ),
    Mistake(
        "the gradient of the scorer goes through the tanh",
        "Does the scorer stand before the tanh, or after it?",
        {"(ds[..., None] * match)": "(ds[..., None] * match * (1 - match**2))"},
    ),
    Mistake(
        "the gradient of the scorer has the scorer as a factor",
        "The score is linear in the scorer. Can its derivative depend on the scorer?",
        {"(ds[..., None] * match)": "(dmatch * match)"},
    ),
    Mistake(
        "the gradient of the scorer is averaged over the pairs",
        "One scorer judges all pairs. Do the gradients of its uses add up, or is their mean taken?",
        {"(ds[..., None] * match).sum": "(ds[..., None] * match).mean"},
    ),
    Mistake(
        "a key hears from the last query only",
        "All T queries are compared with the same key. How many gradients come back to it?",
        {"dsum.sum(axis=1)": "dsum[:, -1]"},
    ),
    Mistake(
        "the gradients of a key are averaged over the queries",
        "Two queries look at one key. Is its gradient the sum of what the two send back, or their mean?",
        {"dsum.sum(axis=1)": "dsum.mean(axis=1)"},
    ),
    Mistake(
        "the softmax is taken entry by entry",
        "Raise one score. Do the other weights of its row stay as they are?",
        {"(p * dp).sum(axis=-1, keepdims=True)": "p * dp"},
    ),
    Mistake(
        "the average of dp is forgotten",
        "If all keys of a row have the same price, is there any reason to move a score? What does your formula say?",
        {" - (p * dp).sum(axis=-1, keepdims=True)": ""},
    ),
    Mistake(
        "the scores are divided by √D",
        "That is the scale of another attention. Does this forward have it?",
        {"dp = do @ v.swapaxes(-1, -2)": "dp = do @ v.swapaxes(-1, -2) / np.sqrt(len(scorer))"},
    ),
    Mistake(
        "dv is made with a reshape of p, not with its transpose",
        "A reshape keeps the numbers in the order of memory. Does your entry (j, t) belong to query t and key j?",
        {"p.swapaxes(-1, -2) @ do": "p.reshape(len(p), p.shape[2], p.shape[1]) @ do"},
    ),
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

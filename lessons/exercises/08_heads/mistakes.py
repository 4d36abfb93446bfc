"""The problems, the hints and the known mistakes of 08_heads."""

import dataclasses

import numpy as np
from exercise_problems import backward_problem, sizes

from minitransformer.exercises import Exercise, Invariant, Mistake, Output, Problem, Replacement, Task
from minitransformer.functional import merge_heads, split_heads

SIZES = sizes("B T H D", (5, 7, 6, 4), (2, 3, 4, 5), (1, 1, 1, 1), (2, 1, 3, 2))
FEATURES, HEADS = "BTC", "BHTD"  # the letters of the two layouts


def make_split(rng, given, B, T, H, D):
    """What the library does with the tokens' features."""
    x = rng.standard_normal((B, T, H * D))
    return Problem((x, H), (split_heads(x, H),), {"x": x})


def make_merge(rng, given, B, T, H, D):
    """What the library does with the heads."""
    heads = rng.standard_normal((B, H, T, D))
    return Problem((heads,), (merge_heads(heads),), {"heads": heads})


def make_split_backward(rng, given, B, T, H, D):
    """The derivative of the library's split."""
    inputs = {"x": rng.standard_normal((B, T, H * D))}
    problem = backward_problem(lambda x: (split_heads(x, H), None), inputs, ("x",), rng)
    return dataclasses.replace(problem, args=problem.args[:1])


def make_merge_backward(rng, given, B, T, H, D):
    """The derivative of the library's merge."""
    inputs = {"heads": rng.standard_normal((B, H, T, D))}
    return backward_problem(lambda heads: (merge_heads(heads), H), inputs, ("heads",), rng)


def tokens_keep_their_numbers(outputs, problem):
    """Whether the heads of token t hold the features of token t, in any order."""
    (heads,), x = outputs, problem.args[0]
    B, T, _ = x.shape
    return all(set(heads[b, :, t].flat) == set(x[b, t].flat) for b in range(B) for t in range(T))


def heads_stay_together(outputs, problem):
    """Whether the D numbers that a head has for a token are still side by side, in any order."""
    (x,), heads = outputs, problem.args[0]
    B, T, C = x.shape
    D = heads.shape[-1]
    runs = {tuple(x[b, t, c : c + D]) for b in range(B) for t in range(T) for c in range(0, C, D)}
    return all(tuple(row) in runs for row in heads.reshape(-1, D))


SPLIT = (
    Mistake("heads-reshaped", {"(B, T, H, C // H).transpose(0, 2, 1, 3)": "(B, H, T, C // H)"}),
    Mistake("heads-dealt", {"(B, T, H, C // H).transpose(0, 2, 1, 3)": "(B, T, C // H, H).transpose(0, 3, 1, 2)"}),
    Mistake("tokens-still-come-before-heads", {".transpose(0, 2, 1, 3)": ""}),
    Mistake("transpose-sends-tokens-end", {"0, 2, 1, 3": "0, 2, 3, 1"}),
)

MERGE = (
    Mistake("heads-reshaped", {".transpose(0, 2, 1, 3)": ""}),
    Mistake("heads-dealt", {"0, 2, 1, 3": "0, 2, 3, 1"}),
    Mistake("heads-added-up", {"transpose(0, 2, 1, 3).reshape(B, T, H * D)": "sum(axis=1)"}),
)

SPLIT_BACKWARD = (
    Mistake("heads-reshaped", {"merge_heads(dheads)": "dheads.reshape(len(dheads), dheads.shape[2], -1)"}),
    Mistake(
        "heads-dealt", {"merge_heads(dheads)": "dheads.transpose(0, 2, 3, 1).reshape(len(dheads), dheads.shape[2], -1)"}
    ),
    Mistake("all-heads-get-mean-gradients", {"merge_heads(dheads)": "np.tile(dheads.mean(axis=1), dheads.shape[1])"}),
)

MERGE_BACKWARD = (
    Mistake("heads-reshaped", {"split_heads(dx, H)": "dx.reshape(len(dx), H, dx.shape[1], -1)"}),
    Mistake("heads-dealt", {"split_heads(dx, H)": "dx.reshape(*dx.shape[:2], -1, H).transpose(0, 3, 1, 2)"}),
    Mistake("all-heads-get-gradient-head", {"split_heads(dx, H)": "np.repeat(split_heads(dx, H)[:, :1], H, axis=1)"}),
)

OWN_NUMBERS = Invariant("the heads of a token hold exactly the numbers of its own features", tokens_keep_their_numbers)

TOGETHER = Invariant("the D numbers that a head has for a token stay side by side", heads_stay_together)


def of_any_dtype(mine):
    """The learner's function, with results in the dtype of what comes in."""
    return lambda x, H: np.asarray(mine(x, H)).astype(x.dtype, copy=False)


def of_several_parts(mine):
    """The learner's function for what the library merges at once: the gradients of q, k and v."""
    return lambda *parts: np.concatenate([np.asarray(mine(part)).astype(part.dtype) for part in parts], axis=-1)


EXERCISE = Exercise(
    name="08_heads",
    hints=(
        "Feature c of a token becomes feature d of a head. Which head, and which d, for c = 0, for c = D − 1, and "
        "for c = D?",
        "One step cuts the last axis in two, and another puts the heads before the tokens. Which of them do you "
        "have? For the backward: if a function only moves numbers, its backward moves them home. Which of the four "
        "functions undoes which?",
        "split: (B, T, C) → (B, T, H, D) → (B, H, T, D).  merge: the same, from right to left",
    ),
    tasks=(
        Task("split_heads", (Output("heads", HEADS),), make_split, SIZES, SPLIT, invariants=(OWN_NUMBERS,)),
        Task("merge_heads", (Output("x", FEATURES),), make_merge, SIZES, MERGE, invariants=(TOGETHER,)),
        Task(
            "split_heads_backward",
            (Output("dx", FEATURES),),
            make_split_backward,
            SIZES,
            SPLIT_BACKWARD,
            linear=True,
            invariants=(TOGETHER,),
        ),
        Task(
            "merge_heads_backward",
            (Output("dheads", HEADS),),
            make_merge_backward,
            SIZES,
            MERGE_BACKWARD,
            linear=True,
            invariants=(OWN_NUMBERS,),
        ),
    ),
    replaces={
        "split_heads": Replacement(split_heads, of_any_dtype),
        "merge_heads": Replacement(merge_heads, of_several_parts),
    },
)

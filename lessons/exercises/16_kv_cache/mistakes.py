"""The problems, the hints and the known mistakes of 16_kv_cache."""

import math

import numpy as np
from exercise_problems import sizes

from minitransformer.exercises import Exercise, Invariant, Mistake, Output, Problem, Task

SIZES = sizes("B T C D width", (2, 7, 6, 3, 5), (3, 4, 5, 6, 2), (1, 1, 1, 1, 1), (2, 0, 3, 4, 1))


def make_text(rng, given, B, T, C, D, width):
    """A text of T tokens and a new one. With T = 0 nothing has been kept yet."""
    x = rng.standard_normal((B, T + 1, C))
    W = tuple(rng.standard_normal((C, columns)) / math.sqrt(C) for columns in (D, D, width))
    PE = rng.standard_normal((T + 3, C))
    o, k, v = given.attention(x, W, PE)
    new = np.broadcast_to(np.arange(T + 1)[:, None] == T, (B, T + 1, 1))
    return Problem(
        (x[:, -1], k[:, :-1].copy(), v[:, :-1].copy(), W, PE),
        (o[:, -1], k, v),
        ratios={"sqrt(D)": math.sqrt(D)},
        places={"in the new row": {"k": new, "v": new}},
    )


def leaves_the_old(outputs, problem):
    """Whether the rows that were kept are still where they were."""
    pairs = zip(outputs[1:], problem.args[1:3], strict=True)
    return all(new.ndim == 3 and np.array_equal(new[:, : old.shape[1]], old) for new, old in pairs)


MISTAKES = (
    Mistake("new-key-value-overwrite-last", {"([k,": "([k[:, :-1],", "([v,": "([v[:, :-1],"}),
    Mistake("new-token-does-not-see", {"(k @": "(k[:, :-1] @", "@ v)": "@ v[:, :-1])"}),
    Mistake("new-key-value-not-kept", {"[:, 0], k, v": "[:, 0], k[:, :-1], v[:, :-1]"}),
    Mistake(
        "new-key-value-neither-used",
        {"(k @": "(k[:, :-1] @", "@ v)": "@ v[:, :-1])", "[:, 0], k, v": "[:, 0], k[:, :-1], v[:, :-1]"},
    ),
    Mistake("scores-not-scaled", {" / math.sqrt(k.shape[-1])": ""}),
    Mistake("scores-divided-root-number-tokens", {"k.shape[-1]": "k.shape[1]"}),
    Mistake("new-token-always-position-0", {"PE[k.shape[1]]": "PE[0]"}),
    Mistake("new-token-position-last-one", {"PE[k.shape[1]]": "PE[k.shape[1] - 1]"}),
    Mistake("new-token-no-position", {"    x = x + PE[k.shape[1]]\n": ""}),
    Mistake(
        "new-key-value-come",
        {"[k, (x @ W_k)[:, None]]": "[(x @ W_k)[:, None], k]", "[v, (x @ W_v)[:, None]]": "[(x @ W_v)[:, None], v]"},
    ),
)

EXERCISE = Exercise(
    name="16_kv_cache",
    hints=(
        "Which rows of q, k and v does the last row of o need? Which of them were computed before?",
        "In this order: the position; q, k and v; what is kept; the scores; the mean. Which of these steps need "
        "the T old tokens, and which one needs no mask any more?",
        "q, new key (B, D), new value (B, width);  k (B, T + 1, D), v (B, T + 1, width);  s (B, T + 1) = k q / "
        "number;  o (B, width)",
    ),
    tasks=(
        Task(
            function="extend",
            outputs=(
                Output("o", ("B", "width")),
                Output("k", ("B", "T + 1", "D")),
                Output("v", ("B", "T + 1", "width")),
            ),
            make=make_text,
            sizes=SIZES,
            invariants=(Invariant("the rows that were kept stay as they are, and where they are", leaves_the_old),),
            mistakes=MISTAKES,
        ),
    ),
)

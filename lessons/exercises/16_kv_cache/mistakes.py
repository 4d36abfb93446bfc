"""The problems that 16_kv_cache is tried on, its hints, and the mistakes that are known."""

import math

import numpy as np

from minitransformer.exercises import Exercise, Invariant, Mistake, Output, Problem, Task
from minitransformer.exercises.problems import sizes

SIZES = sizes("B t C D E", (2, 7, 6, 3, 5), (3, 4, 5, 6, 2), (1, 1, 1, 1, 1), (2, 0, 3, 4, 1))


def make_text(rng, given, B, t, C, D, E):
    """A text of t tokens and a new one. With t = 0 nothing has been kept yet."""
    x = rng.standard_normal((B, t + 1, C))
    W = tuple(rng.standard_normal((C, width)) / math.sqrt(C) for width in (D, D, E))
    P = rng.standard_normal((t + 3, C))
    o, K, V = given.attention(x, W, P)
    T = x.shape[1]
    last = np.broadcast_to(np.arange(T)[:, None] == T - 1, (B, T, 1))
    return Problem(
        (x[:, -1], K[:, :-1].copy(), V[:, :-1].copy(), W, P),
        (o[:, -1], K, V),
        ratios={"sqrt(d_k)": math.sqrt(D)},
        places={"in the new row": {"K": last, "V": last}},
    )


def leaves_the_old(outputs, problem):
    """Whether the rows that were kept are still where they were."""
    pairs = zip(outputs[1:], problem.args[1:3], strict=True)
    return all(new.ndim == 3 and np.array_equal(new[:, : old.shape[1]], old) for new, old in pairs)


MISTAKES = (
    Mistake(
        "the new key and value overwrite the last ones",
        "How many tokens will the next one look back at? How many rows have you kept?",
        {"([K,": "([K[:, :-1],", "([V,": "([V[:, :-1],"},
    ),
    Mistake(
        "the new token does not see itself",
        "Row t of the causal mask lets which columns be seen: those before t, or t as well?",
        {"(K @": "(K[:, :-1] @", "@ V)": "@ V[:, :-1])"},
    ),
    Mistake(
        "the new key and value are not kept",
        "What will the next token need of this one?",
        {"[:, 0], K, V": "[:, 0], K[:, :-1], V[:, :-1]"},
    ),
    Mistake(
        "the new key and value are neither used nor kept",
        "Does the new token attend to itself? And what will the next token need of this one?",
        {"(K @": "(K[:, :-1] @", "@ V)": "@ V[:, :-1])", "[:, 0], K, V": "[:, 0], K[:, :-1], V[:, :-1]"},
    ),
    Mistake(
        "the scale of the scores is missing",
        "The forward divides the scores by a number. Is this another attention, or the same?",
        {" / math.sqrt(K.shape[-1])": ""},
    ),
    Mistake(
        "the scores are divided by the root of the number of tokens",
        "Which axis of q does a score sum over, and how long is it?",
        {"K.shape[-1]": "K.shape[1]"},
    ),
    Mistake(
        "the new token always stands at position 0",
        "How many tokens stand before it, and who knows that number?",
        {"P[K.shape[1]]": "P[0]"},
    ),
    Mistake(
        "the new token stands where the last one does",
        "If t tokens stand at 0 ... t - 1, where does the next one stand?",
        {"P[K.shape[1]]": "P[K.shape[1] - 1]"},
    ),
    Mistake(
        "the new token has no position",
        "What does the forward add to x before it makes q, k and v?",
        {"    x = x + P[K.shape[1]]\n": ""},
    ),
    Mistake(
        "the new key and value stand before the old ones",
        "o is right even so, as attention does not ask for the order. But which row does the whole forward have last?",
        {"[K, (x @ W_k)[:, None]]": "[(x @ W_k)[:, None], K]", "[V, (x @ W_v)[:, None]]": "[(x @ W_v)[:, None], V]"},
    ),
)

EXERCISE = Exercise(
    name="16_kv_cache",
    see='lesson 16, "Keys that never change"',
    hints=(
        "Which rows of q, K and V does the last row of o need? Which of them were computed before?",
        "In this order: the position, q, k and v, what is kept, the scores, the mean. Which of these steps need the t "
        "old tokens, and which of them needs no mask any more?",
        "q (B, D), k (B, D), v (B, E);  K (B, t + 1, D), V (B, t + 1, E);  s (B, t + 1) = K q;  o (B, E)",
    ),
    tasks=(
        Task(
            function="extend",
            outputs=(Output("o", "BE"), Output("K", "BtD"), Output("V", "BtE")),
            make=make_text,
            sizes=SIZES,
            invariants=(Invariant("the rows that were kept stay as they are, and where they are", leaves_the_old),),
            mistakes=MISTAKES,
        ),
    ),
)

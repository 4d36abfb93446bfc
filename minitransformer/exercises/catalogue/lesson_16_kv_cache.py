"""Lesson 16: one more token, with kept keys and values. What is right is what the whole forward says."""

import math

import numpy as np

from minitransformer.exercises.exercise import Exercise, Invariant, Mistake, Output, Problem, Task

B, C, D, E = 2, 6, 3, 5  # all different
LENGTHS = (4, 7, 8)  # of the text, with its new token


def make_text(rng, given):
    """A text whose last token is new."""
    x = rng.standard_normal((B, rng.choice(LENGTHS), C))
    W = tuple(rng.standard_normal((C, width)) / math.sqrt(C) for width in (D, D, E))
    P = rng.standard_normal((10, C))
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


def attend(q, K, V, D):
    """One query each (B, D') -> (B, E), with scores over sqrt(D)."""
    s = np.einsum("bd,btd->bt", q, K) / math.sqrt(D)
    p = np.exp(s - s.max(axis=-1, keepdims=True))
    return np.einsum("bt,bte->be", p / p.sum(axis=-1, keepdims=True), V)


def behind(kept, new):
    """One more row (B, D) behind (B, t, D)."""
    return np.concatenate([kept, new[:, None]], axis=1)


def over_the_last(x, K, V, W, P):
    """The new row takes the last one's place."""
    x = x + P[K.shape[1]]
    q, k, v = (x @ matrix for matrix in W)
    K, V = behind(K[:, :-1], k), behind(V[:, :-1], v)
    return attend(q, K, V, K.shape[-1]), K, V


def without_itself(x, K, V, W, P):
    """The new token sees the old ones only."""
    x = x + P[K.shape[1]]
    q, k, v = (x @ matrix for matrix in W)
    return attend(q, K, V, K.shape[-1]), behind(K, k), behind(V, v)


def without_keeping(x, K, V, W, P):
    """What is returned is what came in."""
    x = x + P[K.shape[1]]
    q, k, v = (x @ matrix for matrix in W)
    return attend(q, behind(K, k), behind(V, v), K.shape[-1]), K, V


def without_scale(x, K, V, W, P):
    """The scores as if they were q kᵀ."""
    x = x + P[K.shape[1]]
    q, k, v = (x @ matrix for matrix in W)
    K, V = behind(K, k), behind(V, v)
    return attend(q, K, V, 1), K, V


def scaled_by_the_length(x, K, V, W, P):
    """The number of tokens for that of features."""
    x = x + P[K.shape[1]]
    q, k, v = (x @ matrix for matrix in W)
    K, V = behind(K, k), behind(V, v)
    return attend(q, K, V, K.shape[1]), K, V


def at_position_0(x, K, V, W, P):
    """As if the text began here."""
    x = x + P[0]
    q, k, v = (x @ matrix for matrix in W)
    K, V = behind(K, k), behind(V, v)
    return attend(q, K, V, K.shape[-1]), K, V


def at_the_last_position(x, K, V, W, P):
    """Where the last one stands already."""
    x = x + P[K.shape[1] - 1]
    q, k, v = (x @ matrix for matrix in W)
    K, V = behind(K, k), behind(V, v)
    return attend(q, K, V, K.shape[-1]), K, V


def without_position(x, K, V, W, P):
    """The token alone."""
    q, k, v = (x @ matrix for matrix in W)
    K, V = behind(K, k), behind(V, v)
    return attend(q, K, V, K.shape[-1]), K, V


def in_front(x, K, V, W, P):
    """The new row comes first."""
    x = x + P[K.shape[1]]
    q, k, v = (x @ matrix for matrix in W)
    K, V = np.concatenate([k[:, None], K], axis=1), np.concatenate([v[:, None], V], axis=1)
    return attend(q, K, V, K.shape[-1]), K, V


MISTAKES = (
    Mistake(
        "the new key and value overwrite the last ones",
        "How many tokens will the next one look back at? How many rows have you kept?",
        over_the_last,
    ),
    Mistake(
        "the new token does not see itself",
        "Row t of the causal mask lets which columns be seen: those before t, or t as well?",
        without_itself,
    ),
    Mistake(
        "the new key and value are used, and not kept",
        "What will the next token need of this one?",
        without_keeping,
    ),
    Mistake(
        "the scale of the scores is missing",
        "The forward divides the scores by a number. Is this another attention, or the same?",
        without_scale,
    ),
    Mistake(
        "the scores are divided by the root of the number of tokens",
        "Which axis of q does a score sum over, and how long is it?",
        scaled_by_the_length,
    ),
    Mistake(
        "the new token always stands at position 0",
        "How many tokens stand before it, and who knows that number?",
        at_position_0,
    ),
    Mistake(
        "the new token stands where the last one does",
        "If t tokens stand at 0 ... t - 1, where does the next one stand?",
        at_the_last_position,
    ),
    Mistake(
        "the new token has no position",
        "What does the forward add to x before it makes q, k and v?",
        without_position,
    ),
    Mistake(
        "the new key and value stand in front of the old ones",
        "o is right even so, as attention does not ask for the order. But which row does the whole forward have last?",
        in_front,
    ),
)

KEPT = Exercise(
    name="16_kv_cache",
    see="lesson 16, part 3",
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
            invariants=(Invariant("the rows that were kept stay as they are, and where they are", leaves_the_old),),
            mistakes=MISTAKES,
        ),
    ),
)

EXERCISES = (KEPT,)

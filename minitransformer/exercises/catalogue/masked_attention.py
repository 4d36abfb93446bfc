"""The second exercise of lesson 07: attention backward under a mask, where some queries may look at nothing."""

import math

import numpy as np

from minitransformer.exercises.exercise import Exercise, Invariant, Mistake, Output, Task, backward_problem

B, T, S, D, E = 2, 4, 5, 3, 6  # all different, so that no wrong axis goes unseen


def make_masked_attention(rng, given):
    """A mask with an empty row, a key that nobody sees, and everywhere else two keys or more."""
    allowed = rng.random((B, T, S)) < 0.6
    allowed[:, :, 1] = allowed[:, :, 4] = True
    allowed[0, 2], allowed[1, :, 3] = False, False
    allowed[1, 0] = [True, True, True, False, True]
    inputs = {
        "q": rng.standard_normal((B, T, D)),
        "k": rng.standard_normal((B, S, D)),
        "v": rng.standard_normal((B, S, E)),
        "allowed": allowed,
    }
    empty, unseen = ~allowed.any(axis=2)[..., None], ~allowed.any(axis=1)[..., None]
    sequence = np.array([True, False])[:, None, None]  # the one with the empty row
    places = {
        "at the query that may look at nothing": {"dq": empty},
        "at the key that nobody may look at": {"dk": unseen, "dv": unseen},
        "in the sequence with the empty row": {"dq": sequence, "dk": sequence, "dv": sequence},
    }
    ratios = {"sqrt(d_k)": math.sqrt(D), "d_k": D}
    return backward_problem(given.masked_attention, inputs, ("q", "k", "v"), rng, ratios=ratios, places=places)


def from_weights(dy, q, k, v, p):
    """Lesson 06 from weights that are wrong already."""
    dp = dy @ v.swapaxes(-1, -2)
    ds = p * (dp - (dp * p).sum(axis=-1, keepdims=True)) / math.sqrt(q.shape[-1])
    return ds @ k, ds.swapaxes(-1, -2) @ q, p.swapaxes(-1, -2) @ dy


def plain_softmax(s):
    """What becomes of an empty row is NaN."""
    with np.errstate(all="ignore"):
        e = np.exp(s - s.max(axis=-1, keepdims=True))
        return e / e.sum(axis=-1, keepdims=True)


def without_the_mask(dy, cache):
    """The weights of unmasked attention."""
    q, k, v, _ = cache
    return from_weights(dy, q, k, v, plain_softmax(q @ k.swapaxes(-1, -2) / math.sqrt(q.shape[-1])))


def with_nan_in_empty_rows(dy, cache):
    """-inf less -inf, or 0 / 0."""
    q, k, v, allowed = cache
    s = np.where(allowed, q @ k.swapaxes(-1, -2) / math.sqrt(q.shape[-1]), -np.inf)
    return from_weights(dy, q, k, v, plain_softmax(s))


def with_a_finite_mask(dy, cache):
    """-1e9 as a score: in an empty row all are alike."""
    q, k, v, allowed = cache
    s = np.where(allowed, q @ k.swapaxes(-1, -2) / math.sqrt(q.shape[-1]), -1e9)
    return from_weights(dy, q, k, v, plain_softmax(s))


def with_the_mask_the_wrong_way_round(dy, cache):
    """True taken for 'ignore'; the rest with care."""
    q, k, v, allowed = cache
    e = np.where(allowed, 0.0, np.exp(q @ k.swapaxes(-1, -2) / math.sqrt(q.shape[-1])))
    return from_weights(dy, q, k, v, e / np.maximum(e.sum(axis=-1, keepdims=True), 1e-300))


def with_the_mask_after_the_softmax(dy, cache):
    """Weights of all keys, and then 0 for the forbidden ones."""
    q, k, v, allowed = cache
    p = plain_softmax(q @ k.swapaxes(-1, -2) / math.sqrt(q.shape[-1]))
    return from_weights(dy, q, k, v, p * allowed)


def without_scale(dy, cache):
    """The weights are right, the scale of their scores is forgotten on the way back."""
    q, k, v, allowed = cache
    e = np.where(allowed, np.exp(q @ k.swapaxes(-1, -2) / math.sqrt(q.shape[-1])), 0.0)
    root = math.sqrt(q.shape[-1])
    dq, dk, dv = from_weights(dy, q, k, v, e / np.maximum(e.sum(axis=-1, keepdims=True), 1e-300))
    return dq * root, dk * root, dv


def unseen_keys_get_nothing(outputs, problem):
    """Whether dk and dv are 0 at keys that no query may look at."""
    unseen = ~problem.inputs["allowed"].any(axis=1)
    return not outputs[1][unseen].any() and not outputs[2][unseen].any()


def empty_rows_get_nothing(outputs, problem):
    """Whether dq is 0 at queries that may look at nothing."""
    return not outputs[0][~problem.inputs["allowed"].any(axis=2)].any()


MASKED_ATTENTION = Exercise(
    name="07_masked_attention_backward",
    see="lesson 07, parts 1 to 3",
    hints=(
        "A forbidden score stands in no formula. What is its weight, and what does a factor like that do to ds?",
        "Make p as the forward does, with both its guards for empty rows. In which line after that is a mask missing?",
        "p (T, S) with zeros where not allowed;  ds = p ∘ (dp − a number a row);  dq (T, D) = (T, S) (S, D) / number",
    ),
    tasks=(
        Task(
            function="masked_attention_backward",
            forward="masked_attention",
            outputs=(Output("dq", "BTD"), Output("dk", "BSD"), Output("dv", "BSE")),
            make=make_masked_attention,
            linear=True,
            invariants=(
                Invariant("a key that nobody may look at gets no gradient", unseen_keys_get_nothing),
                Invariant("a query that may look at nothing gets no gradient", empty_rows_get_nothing),
            ),
            mistakes=(
                Mistake(
                    "the weights are made again without the mask",
                    "Which weights did the forward use: those of all keys, or of the allowed ones alone?",
                    without_the_mask,
                ),
                Mistake(
                    "an empty row is NaN",
                    "What is −inf less −inf, and what 0 / 0? Which two lines of the forward take care of that?",
                    with_nan_in_empty_rows,
                ),
                Mistake(
                    "an empty row looks at all keys alike, as forbidden scores are finite",
                    "If all scores of a row are −1e9, what does the softmax make of them?",
                    with_a_finite_mask,
                ),
                Mistake(
                    "True is taken for 'ignore'",
                    "In this project, what does True mean in a mask?",
                    with_the_mask_the_wrong_way_round,
                ),
                Mistake(
                    "the mask is multiplied on after the softmax",
                    "What do the weights of a row sum to now, and is a forbidden score still in the denominator?",
                    with_the_mask_after_the_softmax,
                ),
                Mistake(
                    "the scale of the scores is missing on the way back",
                    "The forward divides the scores by √d_k. What does the chain rule say about a constant factor?",
                    without_scale,
                ),
            ),
        ),
    ),
)

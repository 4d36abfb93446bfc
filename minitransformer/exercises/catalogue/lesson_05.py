"""Lesson 05: scaled dot-product attention, forward."""

import math

import numpy as np

from minitransformer.exercises.exercise import Exercise, Invariant, Mistake, Output, Problem, Task
from minitransformer.functional import scaled_dot_product_attention

B, T, S, D, E = 3, 4, 5, 6, 7  # all different, so that no wrong axis goes unseen


def make_attention(rng, given):
    """Ordinary scores in the first sequence, large ones in the second, and in the third far below 0.

    All keys of a sequence have the same last entry, which adds one number to all scores of a query.
    """
    q, k, v = (rng.standard_normal(shape) for shape in ((B, T, D), (B, S, D), (B, S, E)))
    k[1:, :, -1] = 2500.0
    q[1, :, -1], q[2, :, -1] = rng.uniform(1.0, 2.0, T), -rng.uniform(1.0, 2.0, T)
    y, cache = scaled_dot_product_attention(q[:, None], k[:, None], v[:, None])  # one head
    large = np.arange(B) > 0
    places = {"in the sequences with large scores": {"y": large[:, None, None], "p": large[:, None, None]}}
    ratios = {"sqrt(d_k)": math.sqrt(D), "d_k": D}
    return Problem((q, k, v), (y[:, 0], cache.weights[:, 0]), ratios=ratios, places=places)


def without_scale(q, k, v):
    """The dot products as they are."""
    s = q @ k.swapaxes(-1, -2)
    e = np.exp(s - s.max(axis=-1, keepdims=True))
    p = e / e.sum(axis=-1, keepdims=True)
    return p @ v, p


def divided_by_the_width(q, k, v):
    """D in place of its root."""
    s = q @ k.swapaxes(-1, -2) / q.shape[-1]
    e = np.exp(s - s.max(axis=-1, keepdims=True))
    p = e / e.sum(axis=-1, keepdims=True)
    return p @ v, p


def scaled_by_the_keys(q, k, v):
    """The root of the number of keys."""
    s = q @ k.swapaxes(-1, -2) / math.sqrt(k.shape[1])
    e = np.exp(s - s.max(axis=-1, keepdims=True))
    p = e / e.sum(axis=-1, keepdims=True)
    return p @ v, p


def scaled_after_the_softmax(q, k, v):
    """The weights are divided, not the scores."""
    s = q @ k.swapaxes(-1, -2)
    e = np.exp(s - s.max(axis=-1, keepdims=True))
    p = e / e.sum(axis=-1, keepdims=True) / math.sqrt(q.shape[-1])
    return p @ v, p


def softmax_over_the_queries(q, k, v):
    """The softmax along the wrong axis."""
    s = q @ k.swapaxes(-1, -2) / math.sqrt(q.shape[-1])
    e = np.exp(s - s.max(axis=-2, keepdims=True))
    p = e / e.sum(axis=-2, keepdims=True)
    return p @ v, p


def without_exponentials(q, k, v):
    """The scores over their sum."""
    s = q @ k.swapaxes(-1, -2) / math.sqrt(q.shape[-1])
    p = s / s.sum(axis=-1, keepdims=True)
    return p @ v, p


def overflowing(q, k, v):
    """exp of the scores themselves."""
    s = q @ k.swapaxes(-1, -2) / math.sqrt(q.shape[-1])
    with np.errstate(all="ignore"):
        e = np.exp(s)
        p = e / e.sum(axis=-1, keepdims=True)
        return p @ v, p


def with_one_maximum_for_all(q, k, v):
    """The largest score of the whole array is taken off."""
    s = q @ k.swapaxes(-1, -2) / math.sqrt(q.shape[-1])
    with np.errstate(all="ignore"):
        e = np.exp(s - s.max())
        p = e / e.sum(axis=-1, keepdims=True)
        return p @ v, p


ATTENTION = Exercise(
    name="05_attention",
    see="lesson 05, parts 1 and 2",
    hints=(
        "What is the variance of a dot product of D entries of variance 1, and what would make it 1 again?",
        "exp overflows beyond 709, and below −745 it is 0. What may you add to all scores of a row without changing p?",
        "s (T, S) = (T, D) (D, S) / number;  p = exp(s − a number a row) / a number a row;  y (T, E) = (T, S) (S, E)",
    ),
    tasks=(
        Task(
            function="attention",
            outputs=(Output("y", "BTE"), Output("p", "BTS")),
            make=make_attention,
            invariants=(
                Invariant(
                    "each row of p sums to 1",
                    lambda outputs, problem: np.abs(outputs[1].sum(axis=-1) - 1.0).max() < 1e-9,
                ),
            ),
            mistakes=(
                Mistake(
                    "the scores are not scaled",
                    "How large is q·k typically if D entries of variance 1 are multiplied and added?",
                    without_scale,
                ),
                Mistake(
                    "the scores are divided by d_k and not by its root",
                    "Var(q·k) is d_k. By what must a variable be divided for its variance to be divided by d_k?",
                    divided_by_the_width,
                ),
                Mistake(
                    "the scores are divided by the root of the number of keys",
                    "Over which axis does the dot product of a query and a key add up: the keys, or the features?",
                    scaled_by_the_keys,
                ),
                Mistake(
                    "the weights are scaled, in place of the scores",
                    "What do the weights of one query sum to now? And which numbers had become too large?",
                    scaled_after_the_softmax,
                ),
                Mistake(
                    "the softmax goes over the queries",
                    "One query shares its attention out among all keys. Along which axis do its weights lie?",
                    softmax_over_the_queries,
                ),
                Mistake(
                    "the scores are divided by their sum, without exponentials",
                    "Can a weight be negative? What makes a positive number of any score?",
                    without_exponentials,
                ),
                Mistake(
                    "exp is taken of the scores themselves",
                    "What is exp(1000) in float64, and what may be taken off all scores of a row before?",
                    overflowing,
                ),
                Mistake(
                    "one maximum is taken off all rows",
                    "A row that lies 1000 below the largest score of all: what is left of it after exp?",
                    with_one_maximum_for_all,
                ),
            ),
        ),
    ),
)

EXERCISES = (ATTENTION,)

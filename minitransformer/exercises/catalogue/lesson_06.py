"""Lesson 06: the backward pass of attention."""

import math

import numpy as np

from minitransformer.exercises.exercise import Exercise, Invariant, Mistake, Output, Task, backward_problem

B, T, S, D, E = 2, 3, 4, 5, 6  # all different, so that no wrong axis goes unseen


def make_attention(rng, given):
    """Queries, keys and values of order one."""
    inputs = {
        "q": rng.standard_normal((B, T, D)),
        "k": rng.standard_normal((B, S, D)),
        "v": rng.standard_normal((B, S, E)),
    }
    ratios = {"sqrt(d_k)": math.sqrt(D), "d_k": D}
    return backward_problem(given.attention, inputs, ("q", "k", "v"), rng, ratios=ratios)


def without_scale(do, cache):
    """The scores as if they were q kᵀ."""
    q, k, v, p = cache
    dp = do @ v.swapaxes(-1, -2)
    ds = p * (dp - (dp * p).sum(axis=-1, keepdims=True))
    return ds @ k, ds.swapaxes(-1, -2) @ q, p.swapaxes(-1, -2) @ do


def with_the_softmax_elementwise(do, cache):
    """The softmax as if it were a sigmoid."""
    q, k, v, p = cache
    ds = do @ v.swapaxes(-1, -2) * p * (1 - p) / math.sqrt(q.shape[-1])
    return ds @ k, ds.swapaxes(-1, -2) @ q, p.swapaxes(-1, -2) @ do


def with_the_mean_over_the_queries(do, cache):
    """The mean along the wrong axis."""
    q, k, v, p = cache
    dp = do @ v.swapaxes(-1, -2)
    ds = p * (dp - (dp * p).sum(axis=-2, keepdims=True)) / math.sqrt(q.shape[-1])
    return ds @ k, ds.swapaxes(-1, -2) @ q, p.swapaxes(-1, -2) @ do


def with_v_for_k(do, cache):
    """dq from the values, as far as they go."""
    q, k, v, p = cache
    dp = do @ v.swapaxes(-1, -2)
    ds = p * (dp - (dp * p).sum(axis=-1, keepdims=True)) / math.sqrt(q.shape[-1])
    return ds @ v[..., : k.shape[-1]], ds.swapaxes(-1, -2) @ q, p.swapaxes(-1, -2) @ do


ATTENTION = Exercise(
    name="06_attention_backward",
    see="lesson 06, parts 1 to 5",
    hints=(
        "Which of q, k and v does each of the three steps (scores, softmax, mean of the values) depend on?",
        "dq and dk both begin at ds, and ds at dp. All weights of a row share one sum: which term of ds comes from it?",
        "dv (S, E) = (S, T) (T, E);  dp (T, S) = (T, E) (E, S);  ds = p ∘ (dp − a number a row);  dq = (T, S) (S, D)",
    ),
    tasks=(
        Task(
            function="attention_backward",
            forward="attention",
            outputs=(Output("dq", "BTD"), Output("dk", "BSD"), Output("dv", "BSE")),
            make=make_attention,
            linear=True,
            invariants=(
                Invariant(
                    "dk summed over the keys is 0: adding one vector to all keys changes no weight",
                    lambda outputs, problem: np.abs(outputs[1].sum(axis=-2)).max() < 1e-9,
                ),
            ),
            mistakes=(
                Mistake(
                    "the scale of the scores is missing",
                    "The forward divides the scores by √d_k. What does the chain rule say about a constant factor?",
                    without_scale,
                ),
                Mistake(
                    "the softmax is taken entry by entry",
                    "Raise one score: do the other weights of its row stay as they are?",
                    with_the_softmax_elementwise,
                ),
                Mistake(
                    "the mean of dp is taken over the queries",
                    "Along which axis do the weights sum to 1?",
                    with_the_mean_over_the_queries,
                ),
                Mistake(
                    "dq is made with v",
                    "What is a score the product of? Values come later.",
                    with_v_for_k,
                ),
            ),
        ),
    ),
)

EXERCISES = (ATTENTION,)

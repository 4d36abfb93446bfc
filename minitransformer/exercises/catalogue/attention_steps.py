"""The second exercise of lesson 06: the three steps of attention backward, each by itself."""

import math

import numpy as np

from minitransformer.exercises.exercise import Exercise, Invariant, Mistake, Output, Task, backward_problem

B, T, S, D, E = 2, 3, 4, 5, 6  # all different, so that no wrong axis goes unseen


def make_weighted_mean(rng, given):
    """Weights as a softmax makes them; values of order one."""
    p, _ = given.softmax(rng.standard_normal((B, T, S)))
    inputs = {"p": p, "v": rng.standard_normal((B, S, E))}
    return backward_problem(given.weighted_mean, inputs, ("p", "v"), rng)


def make_softmax(rng, given):
    """Scores of order one."""
    return backward_problem(given.softmax, {"s": rng.standard_normal((B, T, S))}, ("s",), rng)


def make_scores(rng, given):
    """Queries and keys of order one; ds with row sums that are not 0, for this step does not need them to be."""
    inputs = {"q": rng.standard_normal((B, T, D)), "k": rng.standard_normal((B, S, D))}
    return backward_problem(given.scores, inputs, ("q", "k"), rng, ratios={"sqrt(d_k)": math.sqrt(D), "d_k": D})


def dv_by_reshape(do, cache):
    """The numbers of p read in another order."""
    p, v = cache
    return do @ v.swapaxes(-1, -2), p.reshape(len(p), p.shape[2], p.shape[1]) @ do


def dv_without_weights(do, cache):
    """Each value gets all of do, as if every weight were 1."""
    p, v = cache
    return do @ v.swapaxes(-1, -2), np.ones_like(p).swapaxes(-1, -2) @ do


def dv_as_a_mean(do, cache):
    """Divided by the number of queries."""
    p, v = cache
    return do @ v.swapaxes(-1, -2), p.swapaxes(-1, -2) @ do / do.shape[1]


def dp_with_the_weights(do, cache):
    """A factor p too early: it belongs to the softmax."""
    p, v = cache
    return p * (do @ v.swapaxes(-1, -2)), p.swapaxes(-1, -2) @ do


def dv_before_dp(do, cache):
    """The two in the wrong order."""
    p, v = cache
    return p.swapaxes(-1, -2) @ do, do @ v.swapaxes(-1, -2)


def softmax_entry_by_entry(dp, cache):
    """As if it were a sigmoid."""
    return cache * (1 - cache) * dp


def softmax_without_the_mean(dp, cache):
    """The diagonal's first term alone."""
    return cache * dp


def softmax_with_the_plain_mean(dp, cache):
    """All keys count alike in the mean."""
    return cache * (dp - dp.mean(axis=-1, keepdims=True))


def softmax_with_the_mean_over_queries(dp, cache):
    """The mean along the wrong axis."""
    return cache * (dp - (dp * cache).sum(axis=-2, keepdims=True))


def softmax_with_one_mean(dp, cache):
    """One number for the whole array."""
    return cache * (dp - (dp * cache).sum())


def softmax_with_half_of_the_product(dp, cache):
    """The mean is taken off after the multiplication."""
    return cache * dp - (dp * cache).sum(axis=-1, keepdims=True)


def scores_without_scale(ds, cache):
    """The scores as if they were q kᵀ."""
    q, k = cache
    return ds @ k, ds.swapaxes(-1, -2) @ q


def scores_divided_by_the_width(ds, cache):
    """D in place of its root."""
    q, k = cache
    return ds @ k / q.shape[-1], ds.swapaxes(-1, -2) @ q / q.shape[-1]


def scores_scaled_in_dq_alone(ds, cache):
    """The scale as a thing of the query."""
    q, k = cache
    return ds @ k / math.sqrt(q.shape[-1]), ds.swapaxes(-1, -2) @ q


def dk_by_reshape(ds, cache):
    """The numbers of ds read in another order."""
    q, k = cache
    dr = ds / math.sqrt(q.shape[-1])
    return dr @ k, dr.reshape(len(q), k.shape[1], q.shape[1]) @ q


def dk_before_dq(ds, cache):
    """The two in the wrong order."""
    q, k = cache
    dr = ds / math.sqrt(q.shape[-1])
    return dr.swapaxes(-1, -2) @ q, dr @ k


MEAN_MISTAKES = (
    Mistake(
        "dv is made with a reshape of p, not with its transpose",
        "A reshape keeps the numbers in the order of memory. Is entry (s, t) of yours the weight of query t on key s?",
        dv_by_reshape,
    ),
    Mistake(
        "every query counts fully in dv",
        "If a query gave a value the weight 0, can the loss at this query depend on the value?",
        dv_without_weights,
    ),
    Mistake(
        "dv is averaged over the queries",
        "Two queries read one value. Does the loss change by the sum or by the mean of what each of them feels?",
        dv_as_a_mean,
    ),
    Mistake(
        "dp has a factor p too many",
        "o is linear in p. Can the derivative of a linear function depend on where you are?",
        dp_with_the_weights,
    ),
    Mistake("dp and dv are returned in the wrong order", "What does the docstring say comes first?", dv_before_dp),
)

SOFTMAX_MISTAKES = (
    Mistake(
        "the softmax is taken entry by entry",
        "Raise one score: do the other weights of its row stay as they are?",
        softmax_entry_by_entry,
    ),
    Mistake(
        "the average of dp is forgotten",
        "If all keys of a row cost the same, is there any reason to move a score? What does yours say?",
        softmax_without_the_mean,
    ),
    Mistake(
        "the average of dp counts all keys alike",
        "A key that nobody looks at: does its cost belong in the average of what the query attends to?",
        softmax_with_the_plain_mean,
    ),
    Mistake(
        "the average of dp is taken over the queries",
        "Along which axis do the weights sum to 1?",
        softmax_with_the_mean_over_queries,
    ),
    Mistake(
        "there is one average of dp for all rows",
        "Do the rows of the softmax know of each other? Which axis, and which keepdims, keeps them apart?",
        softmax_with_one_mean,
    ),
    Mistake(
        "p multiplies dp, but not the average that is taken off",
        "Each entry of a row loses the same here. Does adding up the row give 0, as it must?",
        softmax_with_half_of_the_product,
    ),
)

SCORES_MISTAKES = (
    Mistake(
        "the scale of the scores is missing",
        "The forward divides the scores by √d_k. What does the chain rule say about a constant factor?",
        scores_without_scale,
    ),
    Mistake(
        "it is divided by d_k and not by its root",
        "By which number does the forward divide? Backward, is it another one, or applied twice?",
        scores_divided_by_the_width,
    ),
    Mistake(
        "the scale is in dq, but not in dk",
        "A score is q·k / √d_k. Which of the two is the divided one?",
        scores_scaled_in_dq_alone,
    ),
    Mistake(
        "dk is made with a reshape of ds, not with its transpose",
        "A reshape keeps the numbers in the order of memory. Is entry (s, t) of yours that of query t and key s?",
        dk_by_reshape,
    ),
    Mistake("dq and dk are returned in the wrong order", "What does the docstring say comes first?", dk_before_dq),
)

STEPS = Exercise(
    name="06_attention_steps",
    see="lesson 06, parts 1 to 5",
    hints=(
        "Of each step ask: which outputs does one entry of this input reach, and with which factor?",
        "A value is read by all queries and a key is scored by all: sums over T. A weight feels all scores of its row.",
        "dp (T, S) = (T, E) (E, S);  dv (S, E) = (S, T) (T, E);  ds = p ∘ (dp − a number a row);  "
        "dq (T, D) = (T, S) (S, D) / number;  dk (S, D) = (S, T) (T, D) / number",
    ),
    tasks=(
        Task(
            function="weighted_mean_backward",
            forward="weighted_mean",
            outputs=(Output("dp", "BTS"), Output("dv", "BSE")),
            make=make_weighted_mean,
            linear=True,
            mistakes=MEAN_MISTAKES,
        ),
        Task(
            function="softmax_backward",
            forward="softmax",
            outputs=(Output("ds", "BTS"),),
            make=make_softmax,
            linear=True,
            invariants=(
                Invariant(
                    "each row of ds sums to 0: what one key gains, the others lose",
                    lambda outputs, problem: np.abs(outputs[0].sum(axis=-1)).max() < 1e-9,
                ),
            ),
            mistakes=SOFTMAX_MISTAKES,
        ),
        Task(
            function="scores_backward",
            forward="scores",
            outputs=(Output("dq", "BTD"), Output("dk", "BSD")),
            make=make_scores,
            linear=True,
            mistakes=SCORES_MISTAKES,
        ),
    ),
)

"""Lesson 02: the backward pass of the feed-forward network, which is two linear layers and a ReLU."""

import numpy as np

from minitransformer.exercises.exercise import Exercise, Invariant, Mistake, Output, Task, backward_problem

B, T, C, F = 2, 3, 4, 5  # all different, so that no wrong axis goes unseen
OFF = 1  # the one of the F units that is off for every token


def make_feed_forward(rng, given):
    """Weights of order one, and a unit that is off."""
    inputs = {
        "x": rng.standard_normal((B, T, C)),
        "W1": rng.standard_normal((C, F)),
        "b1": rng.standard_normal(F),
        "W2": rng.standard_normal((F, C)),
        "b2": rng.standard_normal(C),
    }
    inputs["b1"][OFF] = -20.0
    ratios = {"the number of tokens": B * T, "B": B, "T": T}
    return backward_problem(given.feed_forward, inputs, tuple(inputs), rng, ratios=ratios)


def rows(array):
    """(B, T, X) -> (B T, X)."""
    return array.reshape(-1, array.shape[-1])


def without_the_gate(dy, cache):
    """The network as if it were linear."""
    x, W1, _, a, W2 = cache
    dh = dy @ W2.T
    return dh @ W1.T, rows(x).T @ rows(dh), rows(dh).sum(axis=0), rows(a).T @ rows(dy), rows(dy).sum(axis=0)


def with_the_sign_of_the_gradient(dy, cache):
    """ReLU applied to da."""
    x, W1, _, a, W2 = cache
    dh = np.maximum(dy @ W2.T, 0)
    return dh @ W1.T, rows(x).T @ rows(dh), rows(dh).sum(axis=0), rows(a).T @ rows(dy), rows(dy).sum(axis=0)


def with_the_gate_on_x(dy, cache):
    """The gate one layer too late, and by the wrong signs."""
    x, W1, _, a, W2 = cache
    dh = dy @ W2.T
    dx = (dh @ W1.T) * (x > 0)
    return dx, rows(x).T @ rows(dh), rows(dh).sum(axis=0), rows(a).T @ rows(dy), rows(dy).sum(axis=0)


def with_b1_before_the_gate(dy, cache):
    """db1 from da."""
    x, W1, h, a, W2 = cache
    da = dy @ W2.T
    dh = da * (h > 0)
    return dh @ W1.T, rows(x).T @ rows(dh), rows(da).sum(axis=0), rows(a).T @ rows(dy), rows(dy).sum(axis=0)


def with_h_for_a(dy, cache):
    """dW2 with what went into ReLU."""
    x, W1, h, _, W2 = cache
    dh = dy @ W2.T * (h > 0)
    return dh @ W1.T, rows(x).T @ rows(dh), rows(dh).sum(axis=0), rows(h).T @ rows(dy), rows(dy).sum(axis=0)


def with_the_matrices_swapped(dy, cache):
    """W1 fits in the place of W2ᵀ, and W2 in that of W1ᵀ."""
    x, W1, h, a, W2 = cache
    dh = dy @ W1 * (h > 0)
    return dh @ W2, rows(x).T @ rows(dh), rows(dh).sum(axis=0), rows(a).T @ rows(dy), rows(dy).sum(axis=0)


def is_zero_at_the_unit_that_is_off(outputs, problem):
    """Whether column OFF of dW1, entry OFF of db1 and row OFF of dW2 are 0."""
    _, dW1, db1, dW2, _ = outputs
    return not (dW1[:, OFF].any() or db1[OFF] or dW2[OFF].any())


FEED_FORWARD = Exercise(
    name="02_feed_forward_backward",
    see="lesson 02, part 6",
    hints=(
        "Of the five inputs, which come in before ReLU and which after it? Only the former have to pass its gate.",
        "da comes from dy through W2, dh from da through the gate, dx from dh through W1. And the matrices?",
        "N = B T:  da (N, F) = (N, C) (C, F), dh = da ∘ gate;  dW2 (F, C) = (F, N) (N, C);  dW1 (C, F) = (C, N) (N, F)",
    ),
    tasks=(
        Task(
            function="feed_forward_backward",
            forward="feed_forward",
            outputs=(
                Output("dx", "BTC"),
                Output("dW1", "CF"),
                Output("db1", "F"),
                Output("dW2", "FC"),
                Output("db2", "C"),
            ),
            make=make_feed_forward,
            linear=True,
            invariants=(
                Invariant(
                    f"a unit that is off for every token (here the one with the index {OFF}) gets no gradient: its "
                    "column of dW1, its entry of db1 and its row of dW2 are 0",
                    is_zero_at_the_unit_that_is_off,
                ),
            ),
            mistakes=(
                Mistake(
                    "ReLU's gate is missing",
                    "Where h was negative a stays 0 when h moves a little. What may pass there?",
                    without_the_gate,
                ),
                Mistake(
                    "ReLU's gate goes by the sign of the gradient",
                    "Which array decided in the forward what passes, and is it in the cache?",
                    with_the_sign_of_the_gradient,
                ),
                Mistake(
                    "the gate is put on x in place of h",
                    "Between which two arrays of the forward does ReLU stand?",
                    with_the_gate_on_x,
                ),
                Mistake(
                    "db1 is taken before the gate",
                    "b1 is added to h. Must its gradient pass ReLU on the way back, or not?",
                    with_b1_before_the_gate,
                ),
                Mistake(
                    "dW2 is made with h",
                    "Which array did W2 multiply in the forward: the one before ReLU, or the one after it?",
                    with_h_for_a,
                ),
                Mistake(
                    "W1 and W2 are in each other's place",
                    "Backward, the last step of the forward comes first. Which matrix made y, and how is it turned?",
                    with_the_matrices_swapped,
                ),
            ),
        ),
    ),
)

EXERCISES = (FEED_FORWARD,)

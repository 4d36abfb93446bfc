"""The problems, the hints and the known mistakes of 02_feed_forward_backward."""

from exercise_problems import backward_problem, sizes

from minitransformer.exercises import Exercise, Invariant, Mistake, Output, Task

SIZES = sizes("B T C F", (2, 3, 4, 5), (3, 5, 2, 4), (1, 1, 1, 1))
OFF = 1  # the index of the unit that is off for every token, if there are several units


def make_feed_forward(rng, given, B, T, C, F):
    """Weights of order one, and one unit that is off."""
    inputs = {
        "x": rng.standard_normal((B, T, C)),
        "W_1": rng.standard_normal((C, F)),
        "b_1": rng.standard_normal(F),
        "W_2": rng.standard_normal((F, C)),
        "b_2": rng.standard_normal(C),
    }
    inputs["b_1"][OFF : OFF + 1] = -20.0
    ratios = {"the number of tokens": B * T, "B": B, "T": T}
    return backward_problem(given.feed_forward, inputs, tuple(inputs), rng, ratios=ratios)


def is_zero_at_the_unit_that_is_off(outputs, problem):
    """Whether column OFF of dW_1, entry OFF of db_1 and row OFF of dW_2 are 0."""
    _, dW_1, db_1, dW_2, _ = outputs
    return len(db_1) <= OFF or not (dW_1[:, OFF].any() or db_1[OFF] or dW_2[OFF].any())


EXERCISE = Exercise(
    name="02_feed_forward_backward",
    hints=(
        "Which of the five inputs come in before ReLU, and which after it? Only the gradients of the first group "
        "pass its gate.",
        "dr comes from dy through W_2, da from dr through the gate, and dx from da through W_1. What about the "
        "matrices?",
        "N = B T:  dr (N, F) = (N, C) (C, F), da = dr ∘ gate;  dW_2 (F, C) = (F, N) (N, C);  dW_1 (C, F) = (C, N) "
        "(N, F)",
    ),
    tasks=(
        Task(
            function="feed_forward_backward",
            forward="feed_forward",
            outputs=(
                Output("dx", "BTC"),
                Output("dW_1", "CF"),
                Output("db_1", "F"),
                Output("dW_2", "FC"),
                Output("db_2", "C"),
            ),
            make=make_feed_forward,
            sizes=SIZES,
            linear=True,
            invariants=(
                Invariant(
                    f"a unit that is off for every token (here unit {OFF}) gets no gradient: its column of dW_1, its "
                    "entry of db_1 and its row of dW_2 are 0",
                    is_zero_at_the_unit_that_is_off,
                ),
            ),
            mistakes=(
                Mistake("relu-gate-open", {" * (a > 0)": ""}),
                Mistake("relu-gated-by-gradient", {"a > 0": "dr > 0"}),
                Mistake("gate-applied-x-instead", {" * (a > 0)": "", "return dx": "return dx * (x > 0)"}),
                Mistake("db-1-taken-before-gate", {"return dx, dW_1, db_1": "return dx, dW_1, dr.sum(axis=(0, 1))"}),
                Mistake("dw-2-made", {"linear_backward(dy, r, W_2)": "linear_backward(dy, a, W_2)"}),
                Mistake("w-1-w-2-swapped", {"= cache": "= cache\n    W_1, W_2 = W_2.T, W_1.T"}),
            ),
        ),
    ),
)

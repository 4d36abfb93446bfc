"""The problems that 02_feed_forward_backward is tried on, its hints, and the mistakes that are known."""

from minitransformer.exercises import Exercise, Invariant, Mistake, Output, Task
from minitransformer.exercises.problems import backward_problem, sizes

SIZES = sizes("B T C F", (2, 3, 4, 5), (3, 5, 2, 4), (1, 1, 1, 1))
OFF = 1  # the one of the F units that is off for every token, if there are several


def make_feed_forward(rng, given, B, T, C, F):
    """Weights of order one, and a unit that is off."""
    inputs = {
        "x": rng.standard_normal((B, T, C)),
        "W1": rng.standard_normal((C, F)),
        "b1": rng.standard_normal(F),
        "W2": rng.standard_normal((F, C)),
        "b2": rng.standard_normal(C),
    }
    inputs["b1"][OFF : OFF + 1] = -20.0
    ratios = {"the number of tokens": B * T, "B": B, "T": T}
    return backward_problem(given.feed_forward, inputs, tuple(inputs), rng, ratios=ratios)


def is_zero_at_the_unit_that_is_off(outputs, problem):
    """Whether column OFF of dW1, entry OFF of db1 and row OFF of dW2 are 0."""
    _, dW1, db1, dW2, _ = outputs
    return len(db1) <= OFF or not (dW1[:, OFF].any() or db1[OFF] or dW2[OFF].any())


EXERCISE = Exercise(
    name="02_feed_forward_backward",
    see='lesson 02, "Follow each number to the loss"',
    hints=(
        "Of the five inputs, which come in before ReLU and which after it? Only the former have to pass its gate.",
        "dr comes from dy through W2, da from dr through the gate, dx from da through W1. And the matrices?",
        "N = B T:  dr (N, F) = (N, C) (C, F), da = dr ∘ gate;  dW2 (F, C) = (F, N) (N, C);  dW1 (C, F) = (C, N) (N, F)",
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
            sizes=SIZES,
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
                    "Where a was negative r stays 0 when a moves a little. What may pass there?",
                    {" * (a > 0)": ""},
                ),
                Mistake(
                    "ReLU's gate goes by the sign of the gradient",
                    "Which array decided in the forward what passes, and is it in the cache?",
                    {"a > 0": "dr > 0"},
                ),
                Mistake(
                    "the gate is put on x instead of a",
                    "Between which two arrays of the forward does ReLU stand?",
                    {" * (a > 0)": "", "return dx": "return dx * (x > 0)"},
                ),
                Mistake(
                    "db1 is taken before the gate",
                    "b1 is added to x W1. Must its gradient pass ReLU on the way back, or not?",
                    {"return dx, dW1, db1": "return dx, dW1, dr.sum(axis=(0, 1))"},
                ),
                Mistake(
                    "dW2 is made with a",
                    "Which array did W2 multiply in the forward: the one before ReLU, or the one after it?",
                    {"linear_backward(dy, r, W2)": "linear_backward(dy, a, W2)"},
                ),
                Mistake(
                    "W1 and W2 are in each other's place",
                    "Backward, the last step of the forward comes first. Which matrix made y, and how is it turned?",
                    {"= cache": "= cache\n    W1, W2 = W2.T, W1.T"},
                ),
            ),
        ),
    ),
)

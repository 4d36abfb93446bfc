"""The problems, the hints and the known mistakes of 05_attention."""

import math

import numpy as np
from exercise_problems import sizes

from minitransformer.exercises import Exercise, Invariant, Mistake, Output, Problem, Task
from minitransformer.functional import scaled_dot_product_attention

SIZES = sizes("B T S D width", (3, 4, 5, 6, 7), (4, 6, 3, 2, 5), (1, 1, 1, 1, 1), (2, 3, 4, 1, 5))


def make_attention(rng, given, B, T, S, D, width):
    """Ordinary scores in the first sequence, large ones in the second, and in all others far below 0.

    All keys of a sequence have the same last entry, which adds one number to all scores of a query.
    """
    q, k, v = (rng.standard_normal(shape) for shape in ((B, T, D), (B, S, D), (B, S, width)))
    k[1:, :, -1] = 2500.0
    q[1:2, :, -1], q[2:, :, -1] = rng.uniform(1.0, 2.0, T), -rng.uniform(1.0, 2.0, T)
    o, cache = scaled_dot_product_attention(q[:, None], k[:, None], v[:, None])  # one head
    large = np.arange(B) > 0
    places = {"in the sequences with large scores": {"o": large[:, None, None], "p": large[:, None, None]}}
    ratios = {"sqrt(D)": math.sqrt(D), "D": D}
    return Problem((q, k, v), (o[:, 0], cache.weights[:, 0]), ratios=ratios, places=places)


EXERCISE = Exercise(
    name="05_attention",
    hints=(
        "What is the variance of a dot product of D entries with variance 1? What would make it 1 again?",
        "exp overflows above 709, and below −745 it is 0. What can you add to all scores of a row without changing p?",
        "s (T, S) = (T, D) (D, S) / number;  p = exp(s − a number for each row) / a number for each row;  o (T, "
        "width) = (T, S) (S, width)",
    ),
    tasks=(
        Task(
            function="attention",
            outputs=(Output("o", ("B", "T", "width")), Output("p", "BTS")),
            make=make_attention,
            sizes=SIZES,
            invariants=(
                Invariant(
                    "each row of p sums to 1",
                    lambda outputs, problem: np.abs(outputs[1].sum(axis=-1) - 1.0).max() < 1e-9,
                ),
            ),
            mistakes=(
                Mistake("scores-not-scaled", {" / math.sqrt(q.shape[-1])": ""}),
                Mistake("divided-by-D", {"math.sqrt(q.shape[-1])": "q.shape[-1]"}),
                Mistake("divided-by-root-of-keys", {"q.shape[-1]": "k.shape[1]"}),
                Mistake(
                    "weights-scaled-instead-scores",
                    {
                        " / math.sqrt(q.shape[-1])": "",
                        "return p @ v": "p = p / math.sqrt(q.shape[-1])\n    return p @ v",
                    },
                ),
                Mistake("softmax-over-queries", {"s.max(axis=-1": "s.max(axis=-2", "p.sum(axis=-1": "p.sum(axis=-2"}),
                Mistake("scores-divided-sum-without-exponentials", {"np.exp(s - s.max(axis=-1, keepdims=True))": "s"}),
                Mistake("exp-taken-scores-they", {" - s.max(axis=-1, keepdims=True)": ""}),
                Mistake("one-maximum-subtracted-all-rows", {"s.max(axis=-1, keepdims=True)": "s.max()"}),
            ),
        ),
    ),
)

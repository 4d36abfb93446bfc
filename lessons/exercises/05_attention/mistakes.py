"""The problems that 05_attention is tried on, its hints, and the mistakes that are known."""

import math

import numpy as np

from minitransformer.exercises import Exercise, Invariant, Mistake, Output, Problem, Task
from minitransformer.exercises.problems import sizes
from minitransformer.functional import scaled_dot_product_attention

SIZES = sizes("B T S D E", (3, 4, 5, 6, 7), (4, 6, 3, 2, 5), (1, 1, 1, 1, 1), (2, 3, 4, 1, 5))


def make_attention(rng, given, B, T, S, D, E):
    """Ordinary scores in the first sequence, large ones in the second, and in all others far below 0.

    All keys of a sequence have the same last entry, which adds one number to all scores of a query.
    """
    q, k, v = (rng.standard_normal(shape) for shape in ((B, T, D), (B, S, D), (B, S, E)))
    k[1:, :, -1] = 2500.0
    q[1:2, :, -1], q[2:, :, -1] = rng.uniform(1.0, 2.0, T), -rng.uniform(1.0, 2.0, T)
    y, cache = scaled_dot_product_attention(q[:, None], k[:, None], v[:, None])  # one head
    large = np.arange(B) > 0
    places = {"in the sequences with large scores": {"y": large[:, None, None], "p": large[:, None, None]}}
    ratios = {"sqrt(d_k)": math.sqrt(D), "d_k": D}
    return Problem((q, k, v), (y[:, 0], cache.weights[:, 0]), ratios=ratios, places=places)


EXERCISE = Exercise(
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
            sizes=SIZES,
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
                    {" / math.sqrt(q.shape[-1])": ""},
                ),
                Mistake(
                    "the scores are divided by d_k and not by its root",
                    "Var(q·k) is d_k. By what must a variable be divided for its variance to be divided by d_k?",
                    {"math.sqrt(q.shape[-1])": "q.shape[-1]"},
                ),
                Mistake(
                    "the scores are divided by the root of the number of keys",
                    "Over which axis does the dot product of a query and a key add up: the keys, or the features?",
                    {"q.shape[-1]": "k.shape[1]"},
                ),
                Mistake(
                    "the weights are scaled, instead of the scores",
                    "What do the weights of one query sum to now? And which numbers had become too large?",
                    {
                        " / math.sqrt(q.shape[-1])": "",
                        "return p @ v": "p = p / math.sqrt(q.shape[-1])\n    return p @ v",
                    },
                ),
                Mistake(
                    "the softmax goes over the queries",
                    "One query shares its attention out among all keys. Along which axis do its weights lie?",
                    {"s.max(axis=-1": "s.max(axis=-2", "e.sum(axis=-1": "e.sum(axis=-2"},
                ),
                Mistake(
                    "the scores are divided by their sum, without exponentials",
                    "Can a weight be negative? What makes a positive number of any score?",
                    {"np.exp(s - s.max(axis=-1, keepdims=True))": "s"},
                ),
                Mistake(
                    "exp is taken of the scores themselves",
                    "What is exp(1000) in float64, and what may be taken off all scores of a row before?",
                    {" - s.max(axis=-1, keepdims=True)": ""},
                ),
                Mistake(
                    "one maximum is taken off all rows",
                    "A row that lies 1000 below the largest score of all: what is left of it after exp?",
                    {"s.max(axis=-1, keepdims=True)": "s.max()"},
                ),
            ),
        ),
    ),
)

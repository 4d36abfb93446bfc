"""The problems that 08_reverse_head is tried on, its hints, and the mistakes that are known."""

import numpy as np

from minitransformer.exercises import Exercise, Invariant, Mistake, Output, Task
from minitransformer.exercises.problems import DECIDED, draw_word, observe_any, sizes

SIZES = sizes("letters n", (3, 6), (4, 8), (2, 5), (1, 1))


def make_reverse(rng, given, letters, n):
    """The first looks at the last."""
    return draw_word(rng, given, letters, n, lambda n: list(reversed(range(n))))


def observe_two(outputs, problem):
    """The same, for two features at most."""
    fits = np.ndim(outputs[0]) == 3 and np.shape(outputs[0])[2] <= 2
    return observe_any(outputs if fits else (np.zeros(0),), problem)


def keys_lie_on_no_line(outputs, problem):
    """Whether the positions' keys do not all lie on one line of the plane."""
    (both,), n = outputs, len(problem.inputs["x"])
    keys = both[1][-n:]
    return n < 3 or np.linalg.matrix_rank(keys - keys.mean(axis=0), tol=1e-6 * np.abs(keys).max()) == 2


EXERCISE = Exercise(
    name="08_reverse_head",
    see='lesson 08, "Two heads by hand"',
    hints=(
        "A query is a direction in the plane. Of all keys, which one has the largest product with it?",
        "Points on a line: only the two ends are ever farthest in some direction. For which shapes is every point "
        "farthest in some direction? And how far ahead of its neighbours is it there, before the softmax?",
        "W_k = [0 (letters, 2); n points of a round curve];  W_q = [0; for each t a large number times the direction "
        "in which point n - 1 - t is farthest]",
    ),
    tasks=(
        Task(
            function="reverse_head",
            outputs=(Output("attention", "TS", sequence=True),),
            make=make_reverse,
            sizes=SIZES,
            observe=observe_two,
            float32=False,
            invariants=(
                DECIDED,
                Invariant("the positions' keys do not all lie on one line", keys_lie_on_no_line),
            ),
            mistakes=(
                Mistake(
                    "the keys lie on a line, and one end of it wins",
                    "Of the numbers 0, 1, 2 ..., which has the largest product with a positive one? Is there room "
                    "beside the line?",
                    {"np.cos(angles), np.sin(angles)": "np.arange(n), np.zeros(n)"},
                ),
                Mistake(
                    "the mirror is one place off",
                    "Where is the image of position 0: at n, or at the last position that there is?",
                    {"keys[::-1]": "keys * [1, -1]"},
                ),
                Mistake(
                    "each position attends to itself",
                    "Your keys are well placed. Whose key is the query of position t to point at?",
                    {"keys[::-1]": "keys"},
                ),
                Mistake(
                    "the scores are too close together for the softmax",
                    "By how much does the best score beat the next one? What may you multiply a query by?",
                    {"200 * keys": "keys"},
                ),
                Mistake(
                    "the matrices do not fit",
                    "x has letters + n features, and the head has two. Which shape must a matrix between them have?",
                    {"np.vstack([nothing, 200 * keys[::-1]]), np.vstack([nothing, keys])": "200 * keys[::-1], keys"},
                ),
            ),
        ),
    ),
)

"""The problems, the hints and the known mistakes of 08_reverse_head."""

import numpy as np
from exercise_problems import DECIDED, draw_word, observe_any, sizes

from minitransformer.exercises import Exercise, Invariant, Mistake, Output, Task

SIZES = sizes("letters T", (3, 6), (4, 8), (2, 5), (1, 1))


def make_reverse(rng, given, letters, T):
    """Each position looks at its mirror image."""
    return draw_word(rng, given, letters, T, lambda T: list(reversed(range(T))))


def observe_two(outputs, problem):
    """The attention map (T, T) of two matrices of at most two features, or 0 everywhere."""
    fits = np.ndim(outputs[0]) == 3 and np.shape(outputs[0])[2] <= 2
    return observe_any(outputs if fits else (np.zeros(0),), problem)


def keys_lie_on_no_line(outputs, problem):
    """Whether the positions' keys do not all lie on one line of the plane."""
    (both,), T = outputs, len(problem.inputs["x"])
    keys = both[1][-T:]
    return T < 3 or np.linalg.matrix_rank(keys - keys.mean(axis=0), tol=1e-6 * np.abs(keys).max()) == 2


EXERCISE = Exercise(
    name="08_reverse_head",
    hints=(
        "A query is a direction in the plane. Which of all keys has the largest dot product with it?",
        "On a line, only the two ends can be the farthest in some direction. On which curves can every point be "
        "the farthest in some direction? And how far ahead of its neighbours is it, before the softmax?",
        "W_k = [0 (letters, 2); T points on a round curve];  W_q = [0; for each t a large number times the "
        "direction in which point T − 1 − t is the farthest]",
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
                Mistake("keys-lie-line-one-end", {"np.cos(angles), np.sin(angles)": "np.arange(T), np.zeros(T)"}),
                Mistake("mirror-one-position-off", {"keys[::-1]": "keys * [1, -1]"}),
                Mistake("each-position-attends-itself", {"keys[::-1]": "keys"}),
                Mistake("scores-too-close-together-softmax", {"200 * keys": "keys"}),
                Mistake(
                    "matrices-do-not-fit",
                    {"np.vstack([nothing, 200 * keys[::-1]]), np.vstack([nothing, keys])": "200 * keys[::-1], keys"},
                ),
            ),
        ),
    ),
)

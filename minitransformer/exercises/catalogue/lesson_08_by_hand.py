"""Lesson 08: two heads whose weights are set by hand. What is compared is the attention that they pay."""

import numpy as np

from minitransformer.exercises.exercise import Exercise, Invariant, Mistake, Output, Problem, Task

NEAR = 0.02  # a weight this near to 0 or 1 is taken for it, as it never gets there

FIT = "the matrices do not fit"


def draw_word(rng, given, looks_at):
    """Words of other lengths and letters each time; `looks_at(n)` says for each position where it is to look."""
    n, letters = int(rng.integers(5, 9)), int(rng.integers(3, 5))
    x = given.tokens(rng.integers(0, letters, size=n), letters)
    expected = np.eye(n)[looks_at(n)]
    return Problem((letters, n), (expected,), {"x": x, "attention_map": given.attention_map})


def make_shift(rng, given):
    """All look at the one before them, and the first at itself."""
    return draw_word(rng, given, lambda n: [0, *range(n - 1)])


def make_reverse(rng, given):
    """The first looks at the last."""
    return draw_word(rng, given, lambda n: list(reversed(range(n))))


def observe_any(outputs, problem):
    """The attention that two matrices (C, any) make, or 0 everywhere if they do not fit x."""
    (both,), x = outputs, problem.inputs["x"]
    if np.ndim(both) != 3 or np.shape(both)[:2] != (2, x.shape[1]):
        return np.zeros((len(x), len(x)))
    with np.errstate(all="ignore"):
        weights = problem.inputs["attention_map"](x, *np.asarray(both, dtype=float))
    return np.where(np.abs(weights - weights.round()) <= NEAR, weights.round(), weights)


def observe_two(outputs, problem):
    """The same, for two features at most."""
    fits = np.ndim(outputs[0]) == 3 and np.shape(outputs[0])[2] <= 2
    return observe_any(outputs if fits else (np.zeros(0),), problem)


def decided(outputs, problem):
    """Whether every row of the attention has made up its mind."""
    weights = observe_any(outputs, problem)
    return not weights.any() or bool((weights.max(axis=-1) >= 1 - NEAR).all())


def placed(letters, rows):
    """A matrix that sees no letters, and gives position t the row t."""
    rows = np.asarray(rows, dtype=float)
    return np.vstack([np.zeros((letters, rows.shape[1])), rows])


def without_a_factor(letters, n):
    """Ones only."""
    looks_for = np.eye(n, k=-1)
    looks_for[0, 0] = 1.0
    return placed(letters, looks_for), placed(letters, np.eye(n))


def at_the_next(letters, n):
    """The ones above the diagonal."""
    looks_for = np.eye(n, k=1)
    looks_for[-1, -1] = 1.0
    return placed(letters, 100 * looks_for), placed(letters, np.eye(n))


def with_nobody_for_the_first(letters, n):
    """The lesson's head."""
    return placed(letters, 100 * np.eye(n, k=-1)), placed(letters, np.eye(n))


def round_the_corner(letters, n):
    """The first looks at the last."""
    return placed(letters, 100 * np.roll(np.eye(n), -1, axis=1)), placed(letters, np.eye(n))


def by_letters(letters, n):
    """As if the positions' features came first."""
    looks_for = np.eye(n, k=-1)
    looks_for[0, 0] = 1.0
    nothing = np.zeros((letters, n))
    return np.vstack([100 * looks_for, nothing]), np.vstack([np.eye(n), nothing])


def for_positions_alone(letters, n):
    """Matrices without rows for the letters."""
    looks_for = np.eye(n, k=-1)
    looks_for[0, 0] = 1.0
    return 100 * looks_for, np.eye(n)


def with_two_features_for_positions_alone(letters, n):
    """Matrices without rows for the letters, two columns."""
    angles = 2 * np.pi * np.arange(n) / n
    around = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    return 1000 * around[::-1], around


def on_a_line(letters, n):
    """Keys 0, 1, 2 ... on a line, and queries the same backwards."""
    keys = np.stack([np.arange(n), np.zeros(n)], axis=1)
    return placed(letters, 100 * keys[::-1]), placed(letters, keys)


def on_a_circle_one_off(letters, n):
    """Mirrored at n, not at n - 1."""
    angles = 2 * np.pi * np.arange(n) / n
    keys = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    queries = np.stack([np.cos(angles), -np.sin(angles)], axis=1)
    return placed(letters, 1000 * queries), placed(letters, keys)


def on_a_circle_at_oneself(letters, n):
    """Not mirrored."""
    angles = 2 * np.pi * np.arange(n) / n
    keys = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    return placed(letters, 1000 * keys), placed(letters, keys)


def on_a_circle_too_weak(letters, n):
    """Without a factor."""
    angles = 2 * np.pi * np.arange(n) / n
    keys = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    return placed(letters, keys[::-1]), placed(letters, keys)


DECIDED = Invariant("each row has one weight near 1, its best score being well above the others", decided)

SHIFT = Exercise(
    name="08_shift_head",
    see='lesson 08, part 1 and "Two heads by hand"',
    hints=(
        "The query of position t and the key of position s meet in one product. When is it to be large, when 0?",
        "x W picks rows of W: the row of the letter plus the row of the position. Which rows must be 0, so that "
        "letters do not count? Which key is position 0 to look for? Is a score of 1 against 0 enough for a softmax?",
        "W_k = [0 (letters, n); one row e_s for each position s];  W_q = [0; for each t a large number times one of "
        "those e_s]",
    ),
    tasks=(
        Task(
            function="shift_head",
            outputs=(Output("attention", "TS"),),
            make=make_shift,
            observe=observe_any,
            invariants=(DECIDED,),
            mistakes=(
                Mistake(
                    "the scores are too small for the softmax",
                    "How large is exp(1/√D) beside the others, exp(0)? What may you multiply a query by?",
                    without_a_factor,
                ),
                Mistake(
                    "each position attends to the one behind it",
                    "Row t of your matrix is the query of position t. In which column is its one?",
                    at_the_next,
                ),
                Mistake(
                    "position 0 looks for nobody, and so it gets a little of everybody",
                    "What does a softmax make of equal scores? Which key could position 0 look for?",
                    with_nobody_for_the_first,
                ),
                Mistake(
                    "position 0 attends to the last one",
                    "Is there a corner to go round? Which key does position 0 look for?",
                    round_the_corner,
                ),
                Mistake(
                    "letters are compared, not positions",
                    "In which features of x does a token's position stand, behind the letters or before them?",
                    by_letters,
                ),
                Mistake(
                    FIT,
                    "x has letters + n features. How many rows must a matrix behind it have, also for what it ignores?",
                    for_positions_alone,
                ),
            ),
        ),
    ),
)

REVERSE = Exercise(
    name="08_reverse_head",
    see='lesson 08, part 1 and "Two heads by hand"',
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
            outputs=(Output("attention", "TS"),),
            make=make_reverse,
            observe=observe_two,
            invariants=(DECIDED,),
            mistakes=(
                Mistake(
                    "the keys lie on a line, and one end of it wins",
                    "Of the numbers 0, 1, 2 ..., which has the largest product with a positive one? Is there room "
                    "beside the line?",
                    on_a_line,
                ),
                Mistake(
                    "the mirror is one place off",
                    "Where is the image of position 0: at n, or at the last position that there is?",
                    on_a_circle_one_off,
                ),
                Mistake(
                    "each position attends to itself",
                    "Your keys are well placed. Whose key is the query of position t to point at?",
                    on_a_circle_at_oneself,
                ),
                Mistake(
                    "the scores are too close together for the softmax",
                    "By how much does the best score beat the next one? What may you multiply a query by?",
                    on_a_circle_too_weak,
                ),
                Mistake(
                    FIT,
                    "x has letters + n features, and the head has two. Which shape must a matrix between them have?",
                    with_two_features_for_positions_alone,
                ),
            ),
        ),
    ),
)

EXERCISES = (SHIFT, REVERSE)

"""The problems, the hints and the known mistakes of 21_another_map."""

import numpy as np
from exercise_problems import sizes

from minitransformer.exercises import Exercise, Invariant, Mistake, Output, Problem, Task

NEAR = 1e-9


def unnoticed(v):
    """An orthonormal basis (directions, S) of what o and the sum do not notice."""
    both = np.column_stack([v, np.ones(len(v))])
    _, lengths, rows = np.linalg.svd(both.T)
    return rows[np.sum(lengths > 1e-10 * lengths[0]) :]


def make_values(rng, given, S, D, independent):
    """Values, of which D - `independent` features are sums of others."""
    v = rng.standard_normal((S, independent)) @ rng.standard_normal((independent, D))
    return Problem((v,), (np.array(len(unnoticed(v))),))


def make_walk(rng, given, S, D):
    """Weights, values and a wish; the end of the walk, from a basis of the null space."""
    v, wish = rng.standard_normal((S, D)), rng.standard_normal(S)
    basis = unnoticed(v)
    delta = basis.T @ (basis @ wish)
    p = rng.uniform(0.5, 1.5, S)
    while S > 3 and np.where(delta < 0, p, 2).argmin() == delta.argmin():  # the smallest does not fall fastest
        p = rng.uniform(0.5, 1.5, S)
    p /= p.sum()
    ways = [-weight / change for weight, change in zip(p, delta, strict=True) if change < 0]
    return Problem((p, v, wish), (p + min(ways) * delta,))


def gives_the_same_o(outputs, problem):
    """Whether o stays as it is."""
    p, v, _ = problem.args
    return bool(np.abs(outputs[0] @ v - p @ v).max() < NEAR)


def sums_to_one(outputs, problem):
    """Whether the weights still sum to 1."""
    return bool(abs(outputs[0].sum() - 1) < NEAR)


def is_not_negative(outputs, problem):
    """Whether no weight is negative."""
    return bool(outputs[0].min() > -NEAR)


def ends_at_zero(outputs, problem):
    """Whether one weight is 0."""
    return bool(np.abs(outputs[0]).min() < NEAR)


COUNT_MISTAKES = (
    Mistake("equation-sum-forgotten", {"np.linalg.matrix_rank(noticed(v))": "np.linalg.matrix_rank(v)"}),
    Mistake("all-d-1-equations-taken", {"np.linalg.matrix_rank(noticed(v))": "v.shape[1] - 1"}),
    Mistake("all-equations-taken-independent", {"np.linalg.matrix_rank(noticed(v))": "min(len(v), v.shape[1] + 1)"}),
    Mistake(
        "number-equations-not-directions-they",
        {"len(v) - np.linalg.matrix_rank(noticed(v))": "np.linalg.matrix_rank(noticed(v))"},
    ),
    Mistake(
        "directions-o-counted-not-weights",
        {"len(v) - np.linalg.matrix_rank(noticed(v))": "v.shape[1] + 1 - np.linalg.matrix_rank(noticed(v))"},
    ),
)
WALK_MISTAKES = (
    Mistake("sum-weights-changes-because-ones", {"both = noticed(v)": "both = v"}),
    Mistake("o-changes-because-only-sum", {"both = noticed(v)": "both = np.ones((len(v), 1))"}),
    Mistake("walks-part-noticed", {"delta = wish - both @": "delta = both @"}),
    Mistake("walks-against-wish", {"falling = delta < 0": "delta = -delta\n    falling = delta < 0"}),
    Mistake("walks-until-last-weight-falls", {"np.min(": "np.max("}),
    Mistake("takes-step-1-however-far", {"np.min(p[falling] / -delta[falling])": "1.0"}),
    Mistake(
        "negative-weights-cut-off",
        {"np.min(p[falling] / -delta[falling])": "1.0", "p + way * delta": "np.maximum(p + way * delta, 0.0)"},
    ),
    Mistake(
        "stops-where-smallest-weight-would",
        {"np.min(p[falling] / -delta[falling])": "np.min(p[falling]) / np.max(-delta[falling])"},
    ),
    Mistake("returns-direction-not-weights", {"p + way * delta": "way * delta"}),
)

EXERCISE = Exercise(
    name="21_another_map",
    hints=(
        "What does the rest of the model get of a row of weights, and how many numbers is that? Which further equation "
        "must weights obey?",
        "A matrix with D + 1 columns holds all equations, and its rank says how many of them are independent. The "
        "direction is what a least-squares fit of the wish by its columns leaves over. Each weight that falls says how "
        "far you may go.",
        "[v 1] (S, D + 1);  number = S less its rank;  δ (S,) = the wish less its projection on these columns;  p + "
        "way · δ, with the smallest of the ways p_j / −δ_j over all j with δ_j < 0",
    ),
    tasks=(
        Task(
            function="count_directions",
            outputs=(Output("number", "", "int", sequence=True),),
            make=make_values,
            sizes=sizes("S D independent", (9, 5, 2), (4, 6, 6), (7, 3, 3), (1, 1, 1)),
            rich=3,
            float32=False,
            mistakes=COUNT_MISTAKES,
        ),
        Task(
            function="another_map",
            outputs=(Output("weights", "S"),),
            make=make_walk,
            sizes=sizes("S D", (9, 4), (6, 2), (5, 3), (3, 1)),
            invariants=(
                Invariant("o stays as it is", gives_the_same_o),
                Invariant("the weights sum to 1", sums_to_one),
                Invariant("no weight is negative", is_not_negative),
                Invariant("one weight is 0 at the end", ends_at_zero),
            ),
            float32=False,  # near 0, rounding decides which weight is the first
            mistakes=WALK_MISTAKES,
        ),
    ),
)

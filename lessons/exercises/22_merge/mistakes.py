"""The problems, the hints and the known mistakes of 22_merge."""

import numpy as np
from exercise_problems import sizes

from minitransformer.exercises import Exercise, Invariant, Mistake, Output, Problem, Task
from minitransformer.functional import scaled_dot_product_attention, softmax

SIZES = sizes("B T S D", (2, 3, 7, 5), (3, 5, 4, 2), (1, 1, 2, 1))


def make_reports(rng, given, B, T, S, D):
    """The reports on the first keys and on the others. Each has the largest score of some queries, if there are two."""
    q, k, v = (2 * rng.standard_normal((B, length, D)) for length in (T, S, S))
    half = S // 2
    s = q @ k.swapaxes(-1, -2) / np.sqrt(D)
    if q[..., 0].size > 1 and len({*(s.argmax(axis=-1) < half).flat}) == 1:
        return make_reports(rng, given, B, T, S, D)
    left, right = given.attend(q, k[:, :half], v[:, :half]), given.attend(q, k[:, half:], v[:, half:])
    m = s.max(axis=-1)
    total = 1 / softmax(s)[0].max(axis=-1)  # the largest weight is exp(0) / total
    o, _ = scaled_dot_product_attention(q[:, None], k[:, None], v[:, None])
    return Problem((left, right), (m, total, o[:, 0]))


def is_at_least_one(outputs, problem):
    """Whether each total is at least 1: the largest score adds exp(0)."""
    return bool((outputs[1] >= 1 - 1e-9).all())


def lies_between(outputs, problem):
    """Whether each number of o lies between those of the two readers."""
    (_, _, left), (_, _, right) = problem.args
    o = outputs[2]
    return bool(((o >= np.minimum(left, right) - 1e-9) & (o <= np.maximum(left, right) + 1e-9)).all())


MISTAKES = (
    Mistake("totals-added-they", {"np.exp(m_left - m) * ": "", "np.exp(m_right - m) * ": ""}),
    Mistake("m-left-readers-largest-score", {"np.maximum(m_left, m_right)": "m_left"}),
    Mistake("m-right-readers-largest-score", {"np.maximum(m_left, m_right)": "m_right"}),
    Mistake("only-left-total-brought-new", {"np.exp(m_right - m) * ": ""}),
    Mistake("only-right-total-brought-new", {"np.exp(m_left - m) * ": ""}),
    Mistake("factors-upside-down", {"m_left - m)": "m - m_left)", "m_right - m)": "m - m_right)"}),
    Mistake("answers-count-alike", {"(from_left / total)[..., None]": "0.5"}),
    Mistake("totals-brought-one-scale", {"(from_left / total)": "(total_left / (total_left + total_right))"}),
    Mistake(
        "shares-o-come-largest-scores",
        {"(from_left / total)": "(np.exp(m_left - m) / (np.exp(m_left - m) + np.exp(m_right - m)))"},
    ),
    Mistake(
        "numerators-o-added",
        {
            "share * o_left + (1 - share) * o_right": "from_left[..., None] * o_left + from_right[..., None] * o_right",
        },
    ),
    Mistake("half-larger-score-takes-all", {"(from_left / total)": "(1.0 * (m_left > m_right))"}),
)

EXERCISE = Exercise(
    name="22_merge",
    hints=(
        "Take one query and two readers with one key each. What are m, total and o, from s_0, s_1, v_0 and v_1?",
        "If one number is subtracted from all scores instead of another, every exponential gets the same factor. And a "
        "numerator is an answer times the total that it was divided by.",
        "total (B, T) = number for each query · total_left + number for each query · total_right;  o (B, T, D) = share "
        "(B, T, 1) · o_left + share (B, T, 1) · o_right",
    ),
    tasks=(
        Task(
            function="merge_states",
            outputs=(Output("m", "BT"), Output("total", "BT"), Output("o", "BTD")),
            make=make_reports,
            sizes=SIZES,
            invariants=(
                Invariant("each total is at least 1, because the largest score adds exp(0)", is_at_least_one),
                Invariant("each number of o lies between those of the two readers", lies_between),
            ),
            mistakes=MISTAKES,
        ),
    ),
)

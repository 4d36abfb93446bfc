"""The problems, the hints and the known mistakes of 22_merge."""

import numpy as np

from minitransformer.exercises import Exercise, Invariant, Mistake, Output, Problem, Task
from minitransformer.exercises.problems import sizes
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
    Mistake(
        "the totals are added as they are",
        "Each reader has subtracted its own largest score. Do exp(1 − 1) and exp(9 − 9) stand for equal numbers?",
        {"np.exp(m_left - m) * ": "", "np.exp(m_right - m) * ": ""},
    ),
    Mistake(
        "m is the left reader's largest score, whatever the right one has seen",
        "What is exp(m_right − m) if the right reader has a score that is larger by 800?",
        {"np.maximum(m_left, m_right)": "m_left"},
    ),
    Mistake(
        "m is the right reader's largest score, whatever the left one has seen",
        "What is exp(m_left − m) if the left reader has a score that is larger by 800?",
        {"np.maximum(m_left, m_right)": "m_right"},
    ),
    Mistake(
        "only the left total is brought to the new scale",
        "For some queries the largest score is the left reader's. Which total needs a factor then?",
        {"np.exp(m_right - m) * ": ""},
    ),
    Mistake(
        "only the right total is brought to the new scale",
        "For some queries the largest score is the right reader's. Which total needs a factor then?",
        {"np.exp(m_left - m) * ": ""},
    ),
    Mistake(
        "the factors are upside down",
        "The new m is larger than the old one. If you subtract more from every score, does the total grow or shrink?",
        {"m_left - m)": "m - m_left)", "m_right - m)": "m - m_right)"},
    ),
    Mistake(
        "the answers count alike",
        "One reader has seen a single key that nobody looks at. Should half of the answer be its value?",
        {"(from_left / total)[..., None]": "0.5"},
    ),
    Mistake(
        "the totals are brought to one scale, but the shares of o are those of the old totals",
        "A share is a part of the new total. On which scale is the left part?",
        {"(from_left / total)": "(total_left / (total_left + total_right))"},
    ),
    Mistake(
        "the shares of o come from the largest scores alone",
        "Two keys that are equally good, and one: do they have the same share?",
        {"(from_left / total)": "(np.exp(m_left - m) / (np.exp(m_left - m) + np.exp(m_right - m)))"},
    ),
    Mistake(
        "the numerators of o are added, but not divided by the new total",
        "If both readers hand in the same answer, what must the merged one be?",
        {
            "share * o_left + (1 - share) * o_right": "from_left[..., None] * o_left + from_right[..., None] * o_right",
        },
    ),
    Mistake(
        "the half with the larger score takes all",
        "If the two largest scores are nearly equal, which answer does the row get? And after a tiny change?",
        {"(from_left / total)": "(1.0 * (m_left > m_right))"},
    ),
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
            function="merge",
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

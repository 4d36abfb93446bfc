"""The problems, the hints and the known mistakes of 14_shift_targets."""

import numpy as np
from exercise_problems import sizes

from minitransformer.data.tasks import make_batch
from minitransformer.exercises import Exercise, Invariant, Mistake, Output, Problem, Task
from minitransformer.vocabulary import EOS, PAD

SIZES = sizes("B T", (6, 8), (4, 6), (1, 2), (2, 2), (1, 1))


def make_answers(rng, given, B, T):
    """Full rows, rows with one place left, empty rows and others, in random order, if there are enough rows."""
    full = T - 1
    lengths = np.append([full, max(full - 1, 0), 0], rng.integers(1, max(full - 1, 2), size=B))[:B]
    rng.shuffle(lengths)
    answer = np.where(np.arange(full) < lengths[:, None], rng.integers(3, 12, size=(B, full)), PAD)
    batch = make_batch(answer, answer)
    short = np.broadcast_to((lengths < full)[:, None], (B, T))
    after = np.arange(T) >= lengths[:, None]
    places = {
        "in the first column": dict.fromkeys(NAMES, np.broadcast_to(np.arange(T) == 0, (B, T))),
        "where eos belongs": {"target_out": batch.target_out == EOS},
        "after the letters": {"target_out": after},
        "in rows that have padding": dict.fromkeys(NAMES, short),
        "in rows without padding": dict.fromkeys(NAMES, ~short),
        "in rows without letters": dict.fromkeys(NAMES, np.broadcast_to((lengths == 0)[:, None], (B, T))),
    }
    return Problem((answer,), (batch.target_in, batch.target_out), places=places)


NAMES = ("target_in", "target_out")


def where_it_counts(outputs, problem):
    """The outputs, with padding in target_in wherever the decoder must write nothing."""
    target_in, target_out = outputs
    wanted = problem.expected[1]
    return (np.where(wanted == PAD, PAD, target_in) if np.shape(target_in) == wanted.shape else target_in), target_out


def ends_everywhere(outputs, problem):
    """Whether each row ends, once."""
    return outputs[1].ndim != 2 or bool(((outputs[1] == EOS).sum(axis=1) == 1).all())


def reads_what_was_written(outputs, problem):
    """Whether each letter that must be written is read one place later."""
    target_in, target_out = outputs
    if target_in.ndim != 2 or target_in.shape != target_out.shape:
        return True
    letters = target_out[:, :-1] > EOS
    return np.array_equal(target_in[:, 1:][letters], target_out[:, :-1][letters])


EXERCISE = Exercise(
    name="14_shift_targets",
    hints=(
        "At position t the decoder has read columns 0 to t of target_in. What must it know there, and what not yet?",
        "The letters are in both arrays, one place apart. In which array does bos come before them, and in which "
        "does eos come after them? Where does a short row end: at the edge, or sooner?",
        "target_in (B, T) = a column and the answer;  target_out (B, T) = the answer and a column; then set one "
        "entry per row, at the row's number of letters",
    ),
    tasks=(
        Task(
            function="shift_targets",
            outputs=(Output("target_in", "BT", "int"), Output("target_out", "BT", "int")),
            make=make_answers,
            sizes=SIZES,
            observe=where_it_counts,
            invariants=(
                Invariant("each row of target_out has exactly one eos", ends_everywhere),
                Invariant(
                    "each letter of target_out is in target_in as well, one column further", reads_what_was_written
                ),
            ),
            mistakes=(
                Mistake("eos-missing", {"] = EOS": "] = PAD"}),
                Mistake("target-not-shifted", {"return target_in": "return target_out"}),
                Mistake("eos-end-row-after-padding", {"(answer != PAD).sum(axis=1)] = EOS": "-1] = EOS"}),
                Mistake(
                    "all-padding-become-eos", {"    return": "    target_out[target_out == PAD] = EOS\n    return"}
                ),
                Mistake("eos-place-last-letter", {".sum(axis=1)": ".sum(axis=1) - 1"}),
                Mistake(
                    "eos-first-padding-rows-without",
                    {
                        "target_out[np.arange(B), (answer != PAD).sum(axis=1)] = EOS": (
                            "for row, out in zip(answer, target_out):\n        out[np.argmax(row == PAD)] = EOS"
                        )
                    },
                ),
                Mistake("input-begins-padding-not-bos", {"BOS": "PAD"}),
                Mistake("input-begins-eos-not-bos", {"BOS": "EOS"}),
                Mistake(
                    "target-output-begins-bos-like", {"return target_in, target_out": "return target_in, target_in"}
                ),
            ),
        ),
    ),
)

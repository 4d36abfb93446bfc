"""The problems that 14_shift_targets is tried on, its hints, and the mistakes that are known."""

import numpy as np

from minitransformer.data.tasks import make_batch
from minitransformer.exercises import Exercise, Invariant, Mistake, Output, Problem, Task
from minitransformer.exercises.problems import sizes
from minitransformer.vocabulary import EOS, PAD

SIZES = sizes("B L", (6, 7), (4, 5), (1, 1), (2, 1), (1, 0))


def make_answers(rng, given, B, L):
    """Answers of L, L - 1, 0 and fewer than L - 1 letters, in random order, as far as there are rows for them."""
    lengths = np.append([L, max(L - 1, 0), 0], rng.integers(1, max(L - 1, 2), size=B))[:B]
    rng.shuffle(lengths)
    answer = np.where(np.arange(L) < lengths[:, None], rng.integers(3, 12, size=(B, L)), PAD)
    batch = make_batch(answer, answer)
    short = np.broadcast_to((lengths < L)[:, None], (B, L + 1))
    behind = np.arange(L + 1) >= lengths[:, None]
    places = {
        "in the first column": dict.fromkeys(NAMES, np.broadcast_to(np.arange(L + 1) == 0, (B, L + 1))),
        "where eos belongs": {"target_out": batch.target_out == EOS},
        "after the letters": {"target_out": behind},
        "in rows that have padding": dict.fromkeys(NAMES, short),
        "in rows without padding": dict.fromkeys(NAMES, ~short),
        "in rows without letters": dict.fromkeys(NAMES, np.broadcast_to((lengths == 0)[:, None], (B, L + 1))),
    }
    return Problem((answer,), (batch.target_in, batch.target_out), places=places)


NAMES = ("target_in", "target_out")


def where_it_counts(outputs, problem):
    """What the decoder reads where it is to say nothing becomes padding, whatever it was."""
    target_in, target_out = outputs
    said = problem.expected[1]
    return (np.where(said == PAD, PAD, target_in) if np.shape(target_in) == said.shape else target_in), target_out


def ends_everywhere(outputs, problem):
    """Whether each row is told to end, once."""
    return outputs[1].ndim != 2 or bool(((outputs[1] == EOS).sum(axis=1) == 1).all())


def is_told_what_was_said(outputs, problem):
    """Whether each letter that is to be said is read one place later."""
    target_in, target_out = outputs
    if target_in.ndim != 2 or target_in.shape != target_out.shape:
        return True
    letters = target_out[:, :-1] > EOS
    return np.array_equal(target_in[:, 1:][letters], target_out[:, :-1][letters])


EXERCISE = Exercise(
    name="14_shift_targets",
    see='lesson 14, "Shift by one"',
    hints=(
        "At place t the decoder has read columns 0 ... t of target_in. What must it know there, and what not yet?",
        "The letters stand in both arrays, one place apart. In front of which is bos? Behind which is eos, in a row of "
        "its own length: at the edge, or sooner?",
        "target_in (B, 1 + L) = a column and the answer;  target_out (B, L + 1) = the answer and a column, and then "
        "one entry a row is set, at the row's number of letters",
    ),
    tasks=(
        Task(
            function="shift_targets",
            outputs=(Output("target_in", "BT", "int"), Output("target_out", "BT", "int")),
            make=make_answers,
            sizes=SIZES,
            observe=where_it_counts,
            invariants=(
                Invariant("each row of target_out has one eos", ends_everywhere),
                Invariant(
                    "each letter of target_out is in target_in as well, one column further", is_told_what_was_said
                ),
            ),
            mistakes=(
                Mistake(
                    "eos is missing",
                    "How is a model to learn when to stop, if no row ever says so?",
                    {"] = EOS": "] = PAD"},
                ),
                Mistake(
                    "the input is not shifted",
                    "What does row t of the decoder read, and what is it to say? Could it just copy?",
                    {"return target_in": "return target_out"},
                ),
                Mistake(
                    "eos stands at the end of the row, after the padding",
                    "After the last letter, what must be said next: eos, or padding first?",
                    {"(answer != PAD).sum(axis=1)] = EOS": "-1] = EOS"},
                ),
                Mistake(
                    "all the padding has become eos",
                    "How often does an answer end? What is the loss to leave out, if there is no padding any more?",
                    {"    return": "    target_out[target_out == PAD] = EOS\n    return"},
                ),
                Mistake(
                    "eos has taken the last letter's place",
                    "How many letters has the row 5 4 0 0, and in which column is the first place after them?",
                    {".sum(axis=1)": ".sum(axis=1) - 1"},
                ),
                Mistake(
                    "eos stands at the first padding, and rows without padding have none",
                    "The longest answer fills its row. Which column of target_out is left for its eos?",
                    {
                        "target_out[np.arange(B), (answer != PAD).sum(axis=1)] = EOS": (
                            "for row, out in zip(answer, target_out):\n        out[np.argmax(row == PAD)] = EOS"
                        )
                    },
                ),
                Mistake(
                    "the input begins with padding, not with bos",
                    "What is the first thing that a decoder reads? Is padding not what masks hide?",
                    {"BOS": "PAD"},
                ),
                Mistake(
                    "the input begins with eos, not with bos",
                    "Some libraries do that. With which token will greedy decoding begin here?",
                    {"BOS": "EOS"},
                ),
                Mistake(
                    "the target output begins with bos, as the input does",
                    "The decoder has read bos. What is the first thing that it must say: what it has just read?",
                    {"return target_in, target_out": "return target_in, target_in"},
                ),
            ),
        ),
    ),
)

"""Files as learners hand them in: the exercise's file, with an answer after it that replaces the stubs.

The solutions are in lessons/exercises. The files of handed_in hold, for some exercises, a right answer that is written
in another way, and wrong ones that were written without a look at the known mistakes. A wrong answer begins with what
must be said about each of its functions: the name of a known mistake, or a clue.
"""

import re
from pathlib import Path
from typing import NamedTuple

from minitransformer.exercises import find_exercises

EXERCISES = find_exercises()
HEADING = re.compile(r"^# --- (right|wrong): (\w+)\n", re.MULTILINE)


class Answer(NamedTuple):
    """An answer to an exercise."""

    exercise: object
    name: str  # the way in which it is written, or what is wrong
    is_right: bool
    text: str

    def __str__(self):
        return f"{self.exercise.name}-{self.name}"


def answers_to(exercise):
    """All answers in the exercise's file."""
    path = Path(__file__).parent / "handed_in" / f"{exercise.name}.py"
    _, *parts = HEADING.split(path.read_text("utf-8")) if path.exists() else [""]
    rows = zip(parts[0::3], parts[1::3], parts[2::3], strict=True)
    return [Answer(exercise, name, kind == "right", text) for kind, name, text in rows]


ANSWERS = [answer for exercise in EXERCISES for answer in answers_to(exercise)]


def hand_in(exercise, text, folder):
    """Write the exercise's file with `text` after it into `folder` -> its path."""
    path = folder / f"{exercise.name}.py"
    path.write_text(exercise.path.read_text("utf-8") + "\n\n" + text, "utf-8")
    return path

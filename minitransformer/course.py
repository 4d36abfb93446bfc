"""The lessons of a checkout: where they are, what their headers say, and which of them have been run."""

import json
import re
from pathlib import Path
from typing import NamedTuple

FOLDER = Path(__file__).resolve().parent.parent / "lessons"
TITLE = re.compile(r"^# # Lesson (\d\d): (.+)$")
FIELD = re.compile(r"^# \* (Question|You derive|Time|Needs|Difficulty|Paper): (.+)$")
TIME = re.compile(r"^(\d+) s(, long)? \(fast: (\d+) s\)$")
DIFFICULTY = re.compile(r"^([1-5]) of 5$")


class LessonInfo(NamedTuple):
    """What a lesson's first cell says."""

    path: Path
    number: str  # "05"
    title: str
    question: str
    derives: str
    seconds: int  # at most, on two cores
    fast_seconds: int
    long: bool  # whether it may take more than a minute
    needs: tuple  # numbers of the lessons before it that it builds on
    difficulty: int  # of 5
    paper: str

    @property
    def name(self):
        """The file's name without .py, which the figure and the record share."""
        return self.path.stem


def read_header(path):
    """What the first cell of the lesson at `path` says -> LessonInfo; ValueError, naming the file, if it is no header.

    Lines that are indented by more than "# " carry on the one before them.
    """
    lines = path.read_text("utf-8").partition("\n# %%\n")[0].replace("\n#   ", " ").splitlines()
    titles = [match.groups() for line in lines if (match := TITLE.match(line))]
    fields = dict(match.groups() for line in lines if (match := FIELD.match(line)))
    time, difficulty = TIME.match(fields.get("Time", "")), DIFFICULTY.match(fields.get("Difficulty", ""))
    if len(titles) != 1 or len(fields) != 6 or not time or not difficulty or titles[0][0] != path.name[:2]:
        raise ValueError(f"{path} has no header of a lesson: title, question, what you derive, time and so on")
    (number, title), (seconds, long, fast) = titles[0], time.groups()
    about = (fields["Question"], fields["You derive"])
    needs = tuple(re.findall(r"\d\d", fields["Needs"]))
    times = (int(seconds), int(fast), long is not None)
    return LessonInfo(path, number, title, *about, *times, needs, int(difficulty[1]), fields["Paper"])


def find_lessons(folder=None):
    """All lessons of the checkout, in order -> [LessonInfo]. FileNotFoundError where the package came without them."""
    folder = folder or FOLDER
    paths = sorted(folder.glob("[0-9][0-9]_*.py"))
    if not paths:
        raise FileNotFoundError(
            f"there are no lessons in {folder}: they are files of the project's checkout, "
            "so clone it and install it with `pip install -e .`"
        )
    return [read_header(path) for path in paths]


def find_lesson(number, folder=None):
    """The lesson called `number`, such as "05" or "5"; ValueError with the numbers there are for another."""
    lessons = find_lessons(folder)
    for lesson in lessons:
        if number in (lesson.name, lesson.number, str(int(lesson.number))):
            return lesson
    raise ValueError(f"there is no lesson {number}: there are {lessons[0].number} to {lessons[-1].number}")


def record_path(lesson, fast=False):
    """Where a run of the lesson leaves its record: beside the lessons' folder, under runs."""
    return lesson.path.parent.parent / "runs" / "lessons" / ("fast" if fast else "full") / f"{lesson.name}.json"


def read_record(lesson, fast=False):
    """The record {"seconds", "checks", "claims", "figure", ...} of the lesson's last run, or None."""
    try:
        return json.loads(record_path(lesson, fast).read_text("utf-8"))
    except FileNotFoundError:
        return None
    except ValueError as error:
        raise ValueError(f"{record_path(lesson, fast)} is not a lesson's record: {error}") from None

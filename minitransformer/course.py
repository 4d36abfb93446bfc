"""The course: where its lessons, exercises and experiments are, what the lessons say, and which have been run.

In a checkout they are the folder lessons beside the package. A wheel carries a copy of that folder as data of the
package; nothing is ever written there. `minitransformer init FOLDER` copies the lessons to a folder of the learner's,
which has a marker file: commands find it from the current directory upwards, as git finds its repository.
"""

import importlib
import json
import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

PACKAGE = Path(__file__).resolve().parent
INSTALLED = PACKAGE / "course_files" / "lessons"  # in a wheel; see lessons/support/wheel.py
FOLDER = INSTALLED if INSTALLED.is_dir() else PACKAGE.parent / "lessons"
EXERCISES = FOLDER / "exercises"  # always the package's own, so that a learner's changes cannot mislead the checker
MARKER = ".minitransformer"
TITLE = re.compile(r"^# # Lesson (\d\d): (.+)$", flags=re.MULTILINE)
QUESTION = re.compile(r"^# \*\*(.+?)\*\*$", flags=re.MULTILINE)
ABOUT = re.compile(
    r"^# (\d+) min, with a pencil (\d+), going deeper (\d+) · runs in (\d+) s(, long)? \(fast: (\d+) s\) · needs "
    r"([\d, ]+|none) · difficulty ([1-5]) of 5 · paper: (.+)$",
    flags=re.MULTILINE,
)
FIGURE = re.compile(r"(?<!\))\]\(\.\./plots/([\w.]+\.png)\)")  # what an image shows, not where it links to
FOLDED = ("Imports", "Ours", "Training")  # titles of code that is folded; "Ours" is what the reader writes first
DAY = 24 * 60 * 60  # seconds
RECALL = "Do you remember?"  # the heading of three questions from earlier lessons, and of their answers
ITEM = re.compile(r"^# \d\. (.+?)(?=\n# \d\. |\n#\n|\n\n|\Z)", flags=re.MULTILINE | re.DOTALL)  # of a numbered list


class LessonInfo(NamedTuple):
    """What a lesson's first cell says."""

    path: Path
    number: str  # "05"
    title: str
    question: str
    minutes: int  # to read the core
    pencil_minutes: int  # to read the core, and to derive it on paper and try the lines that it asks for
    deeper_minutes: int  # to read the rest, which may be skipped
    seconds: int  # to run it, at most, on two cores
    fast_seconds: int
    long: bool  # whether it may take more than a minute
    needs: tuple[str, ...]  # numbers of the lessons before it that it builds on
    difficulty: int  # of 5
    paper: str
    figures: tuple[str, ...]  # file names of the pictures that it shows, in order; they are in plots/

    @property
    def name(self) -> str:
        """The file's name without .py, with which the names of its figures and of its record begin."""
        return self.path.stem


def own_folder() -> Path | None:
    """The nearest folder, from the current directory upwards, that `minitransformer init` has made, or None.

    The search ends at the checkout that this package is part of, which has lessons of its own.
    """
    here = Path.cwd()
    for folder in (here, *here.parents):
        if (folder / MARKER).is_file():
            return folder
        if folder == FOLDER.parent:
            break
    return None


def lessons_folder() -> Path:
    """The folder of the lessons to read and to run: the learner's own copy, or else the package's."""
    own = own_folder()
    return own / "lessons" if own else FOLDER


def workplace(folder: Path) -> Path:
    """Where the lessons of `folder` write their records and figures.

    The parent of `folder`, or the current directory if that is part of an installed wheel.
    """
    return Path() if folder == INSTALLED else folder.parent


def import_experiments() -> ModuleType:
    """What finds and runs the experiments of the lessons' folder: `running`, in its package `experiments`.

    That folder is the learner's own, if there are experiments in it, or else the package's. It becomes the first place
    where Python looks for modules, as if one of its lessons had been started.
    """
    own = lessons_folder()
    folder = str(own if (own / "experiments").is_dir() else FOLDER)
    if folder not in sys.path:
        sys.path.insert(0, folder)
    return importlib.import_module("experiments.running")


def read_header(path: Path) -> LessonInfo:
    """What the first cell of the lesson at `path` says. ValueError, which names the file, if that is not a header."""
    text = path.read_text("utf-8")
    paragraphs = text.partition("\n")[2].partition("\n# ## ")[0].split("\n#\n")
    head = "\n".join(paragraph.replace("\n# ", " ") for paragraph in paragraphs)
    title, question, about = TITLE.search(head), QUESTION.search(head), ABOUT.search(head)
    if not (title and question and about) or title[1] != path.name[:2]:
        raise ValueError(f"{path} has no header of a lesson: title, question, reading time and so on")
    minutes, pencil, deeper, seconds, long, fast, needs, difficulty, paper = about.groups()
    return LessonInfo(
        path,
        number=title[1],
        title=title[2],
        question=question[1],
        minutes=int(minutes),
        pencil_minutes=int(pencil),
        deeper_minutes=int(deeper),
        seconds=int(seconds),
        fast_seconds=int(fast),
        long=long is not None,
        needs=tuple(re.findall(r"\d\d", needs)),
        difficulty=int(difficulty),
        paper=paper,
        figures=tuple(dict.fromkeys(FIGURE.findall(text))),
    )


def read_recall(lesson: LessonInfo) -> list[tuple[str, str]]:
    """The lesson's questions about earlier lessons, each with its answer."""
    _, *parts = lesson.path.read_text("utf-8").split(f"# {RECALL}\n")
    lists = [ITEM.findall(part.partition("\n# #")[0]) for part in parts]
    questions, answers = ([" ".join(text.replace("\n#", " ").split()) for text in found] for found in lists or ((), ()))
    return list(zip(questions, answers, strict=True))


def due_questions(now: float) -> list[tuple[str, str, str]]:
    """Three (number of the lesson, question, answer) for the day of the time `now`, in seconds since 1970.

    They come from lessons that were run at least a day ago, and go round: each day has the next three.
    """
    paths = [(lesson, record_path(lesson, fast)) for lesson in find_lessons() for fast in (False, True)]
    old = dict.fromkeys(lesson for lesson, path in paths if path.exists() and now - path.stat().st_mtime >= DAY)
    known = [(lesson.number, *pair) for lesson in old for pair in read_recall(lesson)]
    first = 3 * int(now // DAY)
    return [known[(first + i) % len(known)] for i in range(min(3, len(known)))]


def find_lessons(folder: Path | None = None) -> list[LessonInfo]:
    """All lessons in order. Raises FileNotFoundError if the lessons are missing."""
    folder = folder or lessons_folder()
    paths = sorted(folder.glob("[0-9][0-9]_*.py"))
    if not paths:
        remedy = "install the package" if folder == FOLDER else f"run minitransformer init {folder.parent}"
        raise FileNotFoundError(f"there are no lessons in {folder}: {remedy} again")
    return [read_header(path) for path in paths]


def find_lesson(number: str, folder: Path | None = None) -> LessonInfo:
    """The lesson called `number`, such as "05" or "5"; ValueError, which says which there are, for another."""
    lessons = find_lessons(folder)
    for lesson in lessons:
        if number in (lesson.name, lesson.number, str(int(lesson.number))):
            return lesson
    raise ValueError(f"there is no lesson {number}: lessons are {lessons[0].number} to {lessons[-1].number}")


def record_path(lesson: LessonInfo, fast: bool = False) -> Path:
    """Where a run of the lesson leaves its record."""
    return workplace(lesson.path.parent) / "runs" / "lessons" / ("fast" if fast else "full") / f"{lesson.name}.json"


def read_record(lesson: LessonInfo, fast: bool = False) -> dict[str, Any] | None:
    """The record {"seconds", "checks", "claims", "figure", ...} of the lesson's last run, or None."""
    try:
        return json.loads(record_path(lesson, fast).read_text("utf-8"))
    except FileNotFoundError:
        return None
    except ValueError as error:
        raise ValueError(f"{record_path(lesson, fast)} is not a lesson's record: {error}") from None

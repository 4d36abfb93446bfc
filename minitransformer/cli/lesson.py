"""`minitransformer lesson`: the lessons, and which of them you have run."""

import argparse
import os
import signal
import sys
from typing import Any

from minitransformer.course import INSTALLED, LessonInfo, find_lesson, find_lessons, read_record
from minitransformer.system.children import run_child
from minitransformer.system.terminal import shown, wrap

DESCRIPTION = """\
List the lessons, or run some of them. A lesson is a Python script: read it in an editor, cell by cell. When you run a
lesson, it prints its checks with the measured values. Its figures go to runs/lessons/full/, or to runs/lessons/fast/
with --fast.

  minitransformer lesson              list the lessons with their reading times, and which ones you have run
  minitransformer lesson 05           run lesson 05
  minitransformer lesson 05 06 07     run several lessons
  minitransformer lesson all          run all lessons
  minitransformer lesson 05 --fast    run it with less training

In a checkout, `python lessons/05_scaled_dot_product.py --fast` does the same. `minitransformer init FOLDER --notebooks`
makes a folder with the lessons as notebooks.
"""

START = {
    "the paper in one file, forward and backward by hand": "python {}/transformer.py",
    "a GPT in one file, which learns to write like a text": "python {}/gpt.py",
    "backprop through a Transformer in one sitting: you write it, and hear about your mistakes": "minitransformer sit",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's own arguments."""
    parser.add_argument(
        "numbers", metavar="NN", nargs="*", help='number of a lesson, or "all" (default: list the lessons)'
    )
    parser.add_argument("--fast", action="store_true", help="shorten the training and the measurements")


def run(arguments: argparse.Namespace) -> tuple[int, Any]:
    """List the lessons, or run one after another -> 0, or the exit status of the first that fails."""
    if not arguments.numbers:
        return 0, show_list()
    every = arguments.numbers == ["all"]
    chosen = find_lessons() if every else [find_lesson(number) for number in arguments.numbers]
    for lesson in chosen:
        status = run_lesson(lesson, arguments.fast)
        if status:
            return status, None
    return 0, {lesson.number: read_record(lesson, arguments.fast) for lesson in chosen}


def run_lesson(lesson: LessonInfo, fast: bool) -> int:
    """Run it as its reader would -> exit status."""
    print(f"Lesson {lesson.number}: {lesson.title}", flush=True)
    print(f"runs in about {lesson.fast_seconds if fast else lesson.seconds} s; read it in {lesson.path}\n", flush=True)
    environment = dict(os.environ, MINITRANSFORMER_FAST="1" if fast else "")
    status = run_child([sys.executable, str(lesson.path)], env=environment)
    print(flush=True)
    if status < 0:
        raise ChildProcessError(f"lesson {lesson.number} was ended by a signal: {signal.strsignal(-status)}")
    return 1 if status else 0


def show_list() -> list[dict[str, Any]]:
    """Print a paragraph for each lesson -> the same as values for JSON."""
    lessons = find_lessons()
    records = [read_record(lesson) for lesson in lessons]
    print("To begin with, in an evening:\n")
    folder = shown(lessons[0].path.parent / "one_file")
    for what, command in START.items():
        print(f"    {command.format(folder)}\n" + wrap(what, "    ", "    ") + "\n")
    print("The lessons:\n")
    for lesson, record in zip(lessons, records, strict=True):
        if record is None:
            state = "not run yet"
        else:
            state = f"run: {len(record['checks'])} checks passed in {record['seconds']:.0f} s"
        print(f"{lesson.number}  {lesson.title}")
        print(wrap(lesson.question, "    ", "    "))
        print(
            wrap(f"{lesson.minutes} min to read, difficulty {lesson.difficulty} of 5 · {state}", "    ", "    ") + "\n"
        )
    print(wrap("Run one with `minitransformer lesson NN`, and read its file in an editor next to the output."))
    if lessons[0].path.parent == INSTALLED:
        print("To have the files in a folder of your own: minitransformer init FOLDER")
    pairs = zip(lessons, records, strict=True)
    return [{**lesson._asdict(), "path": str(lesson.path), "record": record} for lesson, record in pairs]

"""`minitransformer check`: what is right in a learner's exercise, and which mistake was made."""

import argparse
import dataclasses
import json
import time
from collections.abc import Sequence
from pathlib import Path

from minitransformer.exercises import Exercise, Workshop
from minitransformer.exercises.options import add_workshop_arguments, chosen
from minitransformer.exercises.report import print_diagnoses
from minitransformer.exercises.runner import LIMIT, check

DESCRIPTION = """\
Check your solutions to the exercises of a lesson. Checks of shapes, linearity and numerical derivatives show what is
wrong and where. Your code is also compared with about 260 known mistakes, and a mistake that matches is named:

  minitransformer check 06
  minitransformer check 06_attention_backward
  minitransformer check 06 --watch       check again whenever you save the file

The exit status is 0 if everything is right, otherwise 1.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's own arguments."""
    add_workshop_arguments(parser)
    parser.add_argument("--watch", action="store_true", help="check again whenever a file changes, until Ctrl-C")


def run(arguments: argparse.Namespace) -> int:
    """Check each file -> 0 if all functions pass."""
    exercises, workshop = chosen(arguments)
    missing = [exercise.name for exercise in exercises if not workshop.file(exercise).exists()]
    if len(missing) == len(exercises):
        are = "is" if len(missing) == 1 else "are"
        raise ValueError(f"{', '.join(missing)} {are} not started: run minitransformer start {exercises[0].lesson}")
    started = [exercise for exercise in exercises if exercise.name not in missing]
    passed = check_all(started, workshop, arguments.json)
    while arguments.watch:
        wait_for_change([workshop.file(exercise) for exercise in started])
        print()
        passed = check_all(started, workshop, arguments.json)
    return 0 if passed and not missing else 1


def check_all(exercises: Sequence[Exercise], workshop: Workshop, as_json: bool = False) -> bool:
    """Check, print and count -> whether all passed."""
    rows = {}
    for exercise in exercises:
        diagnoses, printed = check(exercise, workshop.file(exercise), LIMIT)
        workshop.count(exercise, diagnoses)
        print_diagnoses(exercise, diagnoses, printed)
        rows[exercise.name] = [dataclasses.asdict(diagnosis) for diagnosis in diagnoses]
    if as_json:
        print(json.dumps(rows))
    return all(row["status"] == "passed" for diagnoses in rows.values() for row in diagnoses)


def wait_for_change(paths: Sequence[Path], pause: float = 0.3) -> None:
    """Return when one of the files has been saved again."""
    before = [stamp(path) for path in paths]
    while [stamp(path) for path in paths] == before:
        time.sleep(pause)


def stamp(path: Path) -> int | None:
    """When a file was changed last, or None while it is missing: some editors remove it to save it."""
    try:
        return path.stat().st_mtime_ns
    except FileNotFoundError:
        return None

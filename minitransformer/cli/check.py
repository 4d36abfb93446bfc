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

HELP = "check an exercise, and name the mistake"
DESCRIPTION = """\
Check your copies of a lesson's exercises. Shapes, linearity and numerical derivatives tell what is wrong and where, and
yours is compared with some two hundred and sixty known mistakes, so that most are named:

  minitransformer check 06
  minitransformer check 06_attention_backward
  minitransformer check 06 --watch       again, whenever you save the file

The exit status is 0 if everything is right, and 1 otherwise.
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
        raise ValueError(f"you have not begun {', '.join(missing)}: minitransformer start {exercises[0].lesson}")
    begun = [exercise for exercise in exercises if exercise.name not in missing]
    passed = check_all(begun, workshop, arguments.json)
    while arguments.watch:
        wait_for_change([workshop.file(exercise) for exercise in begun])
        print()
        passed = check_all(begun, workshop, arguments.json)
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

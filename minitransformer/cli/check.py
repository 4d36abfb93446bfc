"""`minitransformer check`: what is right in a learner's exercise, and which mistake was made."""

import argparse
import dataclasses
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from minitransformer.exercises import Exercise, Workshop
from minitransformer.exercises.diagnose import Diagnosis
from minitransformer.exercises.options import NAMES, add_workshop_arguments, chosen, say_which
from minitransformer.exercises.report import paint, print_diagnoses
from minitransformer.exercises.runner import LIMIT, check
from minitransformer.system.files import kind_of

DESCRIPTION = """\
Check your solutions to the exercises of a lesson. Checks of shapes, linearity and numerical derivatives show what is
wrong and where. Your code is also compared with about 290 known mistakes, and a mistake that matches is named:

  minitransformer check                          the next open exercise
  minitransformer check 06                       the exercises of lesson 06
  minitransformer check 06_attention_backward
  minitransformer check all                      a table of all exercises that you have started
  minitransformer check 06 --watch               check again whenever you save the file

The exit status is 0 if everything is right, otherwise 1.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's own arguments."""
    add_workshop_arguments(parser, f'{NAMES}, or "all" (default: the next open exercise)')
    parser.add_argument("--watch", action="store_true", help="check again whenever a file changes, until Ctrl-C")


def run(arguments: argparse.Namespace) -> tuple[int, Any]:
    """Check each file -> 0 if all functions pass."""
    exercises, workshop = chosen(arguments)
    every = arguments.exercise == "all"
    started = [exercise for exercise in exercises if kind_of(workshop.file(exercise))]
    missing = [exercise.name for exercise in exercises if exercise not in started]
    if not started:
        names = "no exercise is" if every else f"{', '.join(missing)} {'is' if len(missing) == 1 else 'are'} not"
        raise ValueError(f"{names} started: run minitransformer start {exercises[0].lesson}")
    say_which(arguments, exercises)
    while True:
        checked = {path: stamp(path) for path in map(workshop.file, started)}  # a save while they are checked counts
        rows = check_all(started, workshop, table=every)
        if not arguments.watch:
            return 0 if all(map(passes, rows.values())) and (every or not missing) else 1, rows
        wait_for_change(checked)
        print()


def check_all(exercises: Sequence[Exercise], workshop: Workshop, table: bool = False) -> dict[str, list[Any]]:
    """Check, print and count -> what was found in each exercise. With `table` each gets one line."""
    rows = {}
    for exercise in exercises:
        if table:
            print(f"{exercise.name:<30} ", end="", flush=True)
        diagnoses, printed = check(exercise, workshop.file(exercise), LIMIT)
        workshop.count(exercise, diagnoses)
        if table:
            print(verdict(diagnoses), flush=True)
        else:
            print_diagnoses(exercise, diagnoses, printed)
        rows[exercise.name] = [dataclasses.asdict(diagnosis) for diagnosis in diagnoses]
    if table:
        right = sum(map(passes, rows.values()))
        print(f"\n{right} of {len(rows)} started exercises pass; for details: minitransformer check EXERCISE")
    return rows


def passes(diagnoses: list[Any]) -> bool:
    """Whether all functions of an exercise are right."""
    return all(one["status"] == "passed" for one in diagnoses)


def verdict(diagnoses: Sequence[Diagnosis]) -> str:
    """One exercise in a few words: passed, or the functions that are wrong or not written."""
    parts = []
    for status, words, colour in (("wrong", "WRONG:", "red"), ("open", "not written yet:", "yellow")):
        functions = [diagnosis.function for diagnosis in diagnoses if diagnosis.status == status]
        if functions:
            parts.append(f"{paint(words, colour)} {', '.join(functions)}")
    return "; ".join(parts) or paint("passed", "green")


def wait_for_change(before: dict[Path, int | None], pause: float = 0.3) -> None:
    """Return when one of the files has been saved since they had the stamps `before`."""
    while {path: stamp(path) for path in before} == before:
        time.sleep(pause)


def stamp(path: Path) -> int | None:
    """When a file was changed last, or None while it is missing: some editors remove it to save it."""
    try:
        return path.stat().st_mtime_ns
    except FileNotFoundError:
        return None

"""Checking a file in a separate process, so that a file that hangs, prints or exits does no harm."""

import contextlib
import dataclasses
import io
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from minitransformer.exercises.collection import find_exercise
from minitransformer.exercises.diagnose import Diagnosis, diagnose
from minitransformer.exercises.exercise import Exercise

LIMIT = 20  # seconds for one file, on a slow machine; a check takes one or two
SHOWN = 2000  # characters of what the file prints


def check(exercise: Exercise, path: Path, limit: float = LIMIT) -> tuple[list[Diagnosis], str]:
    """Check the file at `path` -> ([Diagnosis], what it printed)."""
    call = f"from minitransformer.exercises.runner import main; main({exercise.name!r}, {str(path)!r})"
    command = [sys.executable, "-c", call]
    environment = dict(os.environ, OPENBLAS_NUM_THREADS="1", OMP_NUM_THREADS="1")
    try:
        run = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=limit,
            env=environment,
        )
    except subprocess.TimeoutExpired:
        return failed(exercise, f"it was stopped after {limit} s: is there a loop that never ends?"), ""
    try:
        answer = json.loads(run.stdout.splitlines()[-1])
        return [diagnosis_from(row) for row in answer["diagnoses"]], answer["printed"]
    except (IndexError, ValueError, KeyError, TypeError):
        said = (run.stderr.strip().splitlines() or [""])[-1]
        return failed(exercise, f"its process ended with status {run.returncode} before the check was done. {said}"), ""


def failed(exercise: Exercise, clue: str) -> list[Diagnosis]:
    """The same clue for every function of the exercise."""
    return [Diagnosis(task.function, "wrong", clues=(clue.strip(),)) for task in exercise.tasks]


def diagnosis_from(row: dict[str, Any]) -> Diagnosis:
    """A Diagnosis from its fields as JSON holds them."""
    return Diagnosis(
        row["function"],
        row["status"],
        row["outputs"],
        tuple(row["wrong"]),
        tuple(row["clues"]),
        tuple(tuple(mistake) for mistake in row["mistakes"]),
    )


def main(name: str, path: str) -> None:
    """Check the file, in the separate process, and print the result as one last line of JSON."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        diagnoses = diagnose(find_exercise(name), Path(path))
    rows = [dataclasses.asdict(diagnosis) for diagnosis in diagnoses]
    print("\n" + json.dumps({"diagnoses": rows, "printed": printed.getvalue()[:SHOWN]}))

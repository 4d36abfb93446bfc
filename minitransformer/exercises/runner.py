"""Checking a file in a process of its own, so that one that hangs, prints or kills its process harms nobody."""

import contextlib
import dataclasses
import io
import json
import os
import subprocess
import sys

from minitransformer.exercises.catalogue import find_exercise
from minitransformer.exercises.diagnose import Finding, diagnose

LIMIT = 20  # seconds for one file, on a slow machine; a check takes one or two
SHOWN = 2000  # characters of what the file prints


def check(exercise, path, limit=LIMIT):
    """Check the file at `path` -> ([Finding], what it printed)."""
    call = f"from minitransformer.exercises.runner import main; main({exercise.name!r}, {str(path)!r})"
    command = [sys.executable, "-c", call]
    environment = dict(os.environ, OPENBLAS_NUM_THREADS="1", OMP_NUM_THREADS="1")
    options = {"capture_output": True, "encoding": "utf-8", "errors": "replace", "timeout": limit, "env": environment}
    try:
        run = subprocess.run(command, stdin=subprocess.DEVNULL, **options)
    except subprocess.TimeoutExpired:
        return failed(exercise, f"it was stopped after {limit} s: is there a loop that never ends?"), ""
    try:
        answer = json.loads(run.stdout.splitlines()[-1])
        return [finding_from(row) for row in answer["findings"]], answer["printed"]
    except (IndexError, ValueError, KeyError, TypeError):
        said = (run.stderr.strip().splitlines() or [""])[-1]
        return failed(exercise, f"its process ended with the status {run.returncode} before it was done. {said}"), ""


def failed(exercise, clue):
    """The same clue for every function of the exercise."""
    return [Finding(task.function, "wrong", clues=(clue.strip(),)) for task in exercise.tasks]


def finding_from(row):
    """A Finding from what JSON makes of it."""
    return Finding(
        row["function"],
        row["status"],
        row["outputs"],
        tuple(row["wrong"]),
        tuple(row["clues"]),
        tuple(tuple(mistake) for mistake in row["mistakes"]),
    )


def main(name, path):
    """In the process of its own: check, and print one last line of JSON."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        findings = diagnose(find_exercise(name), path)
    rows = [dataclasses.asdict(finding) for finding in findings]
    print("\n" + json.dumps({"findings": rows, "printed": printed.getvalue()[:SHOWN]}))

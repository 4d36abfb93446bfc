"""Checking a file in a separate process, so that a file that hangs, prints or exits does no harm."""

import contextlib
import dataclasses
import io
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from minitransformer.exercises.collection import find_exercise
from minitransformer.exercises.diagnose import diagnose
from minitransformer.exercises.exercise import Exercise
from minitransformer.exercises.judging import Diagnosis

LIMIT = 20  # seconds for one file, on a slow machine; a check takes one or two
SHOWN = 2000  # characters of what the file prints


class Printed(io.TextIOBase):
    """A stream that keeps the first characters only: a file may print without end, and memory must not fill."""

    def __init__(self) -> None:
        self.text = ""

    def write(self, text: str) -> int:
        """Keep `text`, as far as there is room."""
        self.text += text[: SHOWN - len(self.text)]
        return len(text)


def check(exercise: Exercise, path: Path, limit: float = LIMIT) -> tuple[list[Diagnosis], str]:
    """Check the file at `path` -> ([Diagnosis], what it printed)."""
    call = "import sys; from minitransformer.exercises.runner import main; main(*sys.argv[1:])"
    environment = dict(os.environ, OPENBLAS_NUM_THREADS="1", OMP_NUM_THREADS="1")
    with tempfile.TemporaryDirectory() as folder:
        answer, errors = Path(folder, "answer.json"), Path(folder, "stderr.txt")
        command = [sys.executable, "-c", call, exercise.name, str(path), str(answer)]
        with errors.open("wb") as stream:
            try:
                # what the file writes past sys.stdout is dropped
                nothing = subprocess.DEVNULL
                run = subprocess.run(
                    command, stdin=nothing, stdout=nothing, stderr=stream, timeout=limit, env=environment
                )
            except subprocess.TimeoutExpired:
                return failed(exercise, f"it was stopped after {limit} s: is there a loop that never ends?"), ""
        if run.returncode == 0 and answer.exists():
            found = json.loads(answer.read_text("utf-8"))
            return [diagnosis_from(row) for row in found["diagnoses"]], found["printed"]
        said = (errors.read_text("utf-8", "replace").strip().splitlines() or [""])[-1]
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


def main(name: str, path: str, answer: str) -> None:
    """Check the file, in the separate process, and write the result as JSON to the file `answer`."""
    printed = Printed()
    with contextlib.redirect_stdout(printed):
        diagnoses = diagnose(find_exercise(name), Path(path))
    rows = [dataclasses.asdict(diagnosis) for diagnosis in diagnoses]
    Path(answer).write_text(json.dumps({"diagnoses": rows, "printed": printed.text}), "utf-8")
    os._exit(0)  # not waiting for threads that the file may have started

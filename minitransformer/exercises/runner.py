"""Checking a file in a separate process, so that a file that hangs, prints or exits does no harm."""

import contextlib
import dataclasses
import io
import itertools
import json
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from minitransformer.exercises.collection import find_exercise
from minitransformer.exercises.diagnose import diagnose
from minitransformer.exercises.exercise import Exercise
from minitransformer.exercises.judging import STATUSES, Diagnosis, failed
from minitransformer.system.children import Head, Tail, run_child
from minitransformer.system.process import THREAD_VARIABLES
from minitransformer.system.terminal import one_line

LIMIT = 20  # seconds for one file, on a slow machine; a check takes one or two
MOST = 1 << 20  # bytes of its answer
SHOWN = 2000  # characters of what the file prints
SHOWN_OF_ERROR = 300  # characters of its last line on stderr
# bytes of its address space (a check needs 150 MB, with PyTorch 700), of each file that it writes, and of core dumps
LIMITS = {"RLIMIT_AS": 2 << 30, "RLIMIT_FSIZE": 16 << 20, "RLIMIT_CORE": 0}
ENVIRONMENT = {**dict.fromkeys(THREAD_VARIABLES, "1"), "MINITRANSFORMER_BACKEND": "numpy"}
TEMPORARY = ("TMPDIR", "TEMP", "TMP")  # the variables that name the folder for temporary files


class Printed(io.TextIOBase):
    """A stream that keeps the first characters only: a file may print without end, and memory must not fill."""

    def __init__(self) -> None:
        self.text = ""

    def write(self, text: str) -> int:
        """Keep `text`, as far as there is room."""
        self.text += text[: SHOWN - len(self.text)]
        return len(text)


def check(exercise: Exercise, path: Path, limit: float = LIMIT) -> tuple[list[Diagnosis], str]:
    """Check the file at `path` -> ([Diagnosis], what it printed).

    What the file writes to the current or the temporary directory goes to a folder that is removed afterwards.
    """
    paths = [os.getcwd(), *map(os.path.abspath, sys.path)]
    call = f"import sys; sys.path[:] = {paths}; from minitransformer.exercises.runner import main; main(*sys.argv[1:])"
    command = [sys.executable, "-c", call, exercise.name, str(path.absolute())]
    limits = {**LIMITS, "RLIMIT_CPU": int(limit) + 5}  # a second net, for processes that have left the session
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as scratch, Tail() as errors, Head(MOST) as answer:
        environment = {**os.environ, **ENVIRONMENT, **dict.fromkeys(TEMPORARY, scratch)}
        streams: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": answer, "stderr": errors}
        try:
            status = run_child(command, limit, 0.0, limits, cwd=scratch, env=environment, **streams)
        except subprocess.TimeoutExpired:
            return failed(exercise, f"it was stopped after {limit} s: is there a loop that never ends?"), ""
    try:
        return read_answer(exercise, answer.kept)
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError):  # not what `main` writes
        how = f"by a signal ({signal.strsignal(-status)})" if status < 0 else f"with status {status}"
        said = one_line(errors.last_line)[-SHOWN_OF_ERROR:]
        return failed(exercise, f"its process ended {how} before the check was done. {said}"), ""


def read_answer(exercise: Exercise, answer: bytes) -> tuple[list[Diagnosis], str]:
    """What `main` wrote -> ([Diagnosis], what the file printed). An error if it is anything else."""
    found = json.loads(answer)
    diagnoses = [diagnosis_from(row) for row in found["diagnoses"]]
    functions = [task.function for task in exercise.tasks]
    if [diagnosis.function for diagnosis in diagnoses] != functions or type(found["printed"]) is not str:
        raise ValueError(f"this is no answer about {functions}")
    return diagnoses, found["printed"]


def diagnosis_from(row: dict[str, Any]) -> Diagnosis:
    """A Diagnosis from its fields as JSON holds them. An error if one has another type."""
    mistakes = tuple((name, question) for name, question in row["mistakes"])
    lists = {**row, "wrong": tuple(row["wrong"]), "clues": tuple(row["clues"]), "mistakes": mistakes}
    diagnosis = Diagnosis(**lists)
    texts = [*diagnosis.outputs, *diagnosis.wrong, *diagnosis.clues, *itertools.chain(*mistakes)]
    numbers = [error for error in diagnosis.outputs.values() if error is not None]
    if diagnosis.status not in STATUSES or {*map(type, texts)} - {str} or {*map(type, numbers)} - {int, float}:
        raise TypeError("a diagnosis has fields of other types")
    return diagnosis


def main(name: str, path: str) -> None:
    """Check the file, in the separate process, and write the result as JSON to stdout, which the file cannot reach."""
    answer = os.dup(1)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    printed, process = Printed(), os.getpid()
    with contextlib.redirect_stdout(printed):
        diagnoses = diagnose(find_exercise(name), Path(path))
    rows = [dataclasses.asdict(diagnosis) for diagnosis in diagnoses]
    if os.getpid() == process:  # not a fork that the file has made
        with open(answer, "w", encoding="utf-8") as stream:
            json.dump({"diagnoses": rows, "printed": printed.text}, stream)
    os._exit(0)  # not waiting for threads that the file may have started

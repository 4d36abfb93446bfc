"""Checking a file in a separate process, so that a file that hangs, prints or exits does no harm."""

import contextlib
import dataclasses
import io
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
from minitransformer.exercises.judging import Diagnosis
from minitransformer.system.children import Tail, run_child
from minitransformer.system.process import THREAD_VARIABLES
from minitransformer.system.terminal import one_line

LIMIT = 20  # seconds for one file, on a slow machine; a check takes one or two
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
    limits = {**LIMITS, "RLIMIT_CPU": int(limit) + 5}  # a second net, for processes that escape
    with tempfile.TemporaryDirectory() as folder, Tail() as errors:
        answer, scratch = Path(folder, "answer.json"), Path(folder, "scratch")
        scratch.mkdir()
        environment = {**os.environ, **ENVIRONMENT, **dict.fromkeys(TEMPORARY, str(scratch))}
        command = [sys.executable, "-c", call, exercise.name, str(path.absolute()), str(answer)]
        streams: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": errors}
        try:
            status = run_child(command, limit, 0.0, limits, cwd=scratch, env=environment, **streams)
            found = json.loads(answer.read_text("utf-8"))
            return [diagnosis_from(row) for row in found["diagnoses"]], found["printed"]
        except subprocess.TimeoutExpired:
            return failed(exercise, f"it was stopped after {limit} s: is there a loop that never ends?"), ""
        except (OSError, ValueError, TypeError, LookupError, RecursionError):
            pass  # no answer that `main` wrote
    how = f"by a signal ({signal.strsignal(-status)})" if status < 0 else f"with status {status}"
    said = one_line(errors.last_line)[-SHOWN_OF_ERROR:]
    return failed(exercise, f"its process ended {how} before the check was done. {said}"), ""


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
    printed, process = Printed(), os.getpid()
    with contextlib.redirect_stdout(printed):
        diagnoses = diagnose(find_exercise(name), Path(path))
    rows = [dataclasses.asdict(diagnosis) for diagnosis in diagnoses]
    if os.getpid() == process:  # not a fork that the file has made
        Path(answer).write_text(json.dumps({"diagnoses": rows, "printed": printed.text}), "utf-8")
    os._exit(0)  # not waiting for threads that the file may have started

"""`minitransformer sit`: backprop through a Transformer in one sitting, judged whenever the file is saved."""

import argparse
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import threading
from pathlib import Path
from typing import NamedTuple

from minitransformer.cli.check import wait_for_change
from minitransformer.course import FOLDER
from minitransformer.exercises.options import add_workshop_arguments, shown
from minitransformer.exercises.report import paint
from minitransformer.exercises.workshop import Workshop
from minitransformer.system.files import atomic_write

DESCRIPTION = """\
Follow one number from the loss of a tiny Transformer back to its embedding, at ten stations, and write each backward
yourself. It takes about 90 minutes with a pencil. The file is copied to your folder my_exercises and opened in the
editor that $VISUAL or $EDITOR names, if that has a window of its own. Each time you save the file it is judged, and a
mistake is named:

  minitransformer sit
  minitransformer sit --once        judge the file once

As a notebook: lessons/one_sitting.ipynb, which `minitransformer init FOLDER` copies. Ctrl-C ends the command; the next
time it goes on where you were. With --once the exit status is 0 if everything is right, otherwise 1.
"""
IN_THE_TERMINAL = {"ed", "emacs", "helix", "hx", "joe", "kak", "micro", "nano", "nvim", "pico", "vi", "vim"}
LIMIT, MOST = 120, 200_000  # seconds, and characters of output, of one run
STATION = re.compile(
    r"^station (\d+) of (\d+), .+: (ok|WRONG|not finished|not written yet)\n(?:[ \t].*\n)*", re.MULTILINE
)


class Outcome(NamedTuple):
    """What a run of the file printed, station by station."""

    numbers: list[str]  # what was printed before each verdict, since the one before; the last is the end of the file
    verdicts: list[str]
    right: list[bool]  # of each station
    problem: str  # what ended the run early, or ""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's own arguments."""
    parser.add_argument("--once", action="store_true", help="judge the file once, and open no editor")
    add_workshop_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    """Copy the file, open it, and judge it after each save."""
    path = Workshop(arguments.folder).path / "one_sitting.py"
    if not path.exists():
        with atomic_write(path) as partial:
            shutil.copyfile(FOLDER / "one_sitting.py", partial)
    print(f"read and write in {shown(path)}", flush=True)
    if not arguments.once:
        open_editor(path)
    outcome = judge(path)
    report(outcome, [False] * len(outcome.right))
    while not arguments.once:
        wait_for_change([path])
        before, outcome = outcome.right, judge(path)
        report(outcome, before)
    if arguments.json:
        print(json.dumps({"path": str(path), "right": outcome.right}))
    return 0 if outcome.right and all(outcome.right) and not outcome.problem else 1


def open_editor(path: Path) -> None:
    """Start the reader's editor, or say how to open the file beside this terminal."""
    editor = shlex.split(os.environ.get("VISUAL") or os.environ.get("EDITOR") or "")
    if editor and Path(editor[0]).stem not in IN_THE_TERMINAL:
        try:
            quiet = subprocess.DEVNULL
            subprocess.Popen([*editor, str(path)], stdin=quiet, stdout=quiet, stderr=quiet)
            return
        except OSError as error:
            print(f"{editor[0]} cannot be started ({error.strerror})")
    program = shlex.join(editor) if editor else "your editor"
    print(f"open it in a second window, with {program}; it is judged here whenever you save it (Ctrl-C ends)")


def judge(path: Path) -> Outcome:
    """Run the file as its reader would, within limits."""
    environment = dict(os.environ, PYTHONIOENCODING="utf-8", OPENBLAS_NUM_THREADS="1", OMP_NUM_THREADS="1")
    pipes: dict[str, int] = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    command = [sys.executable, str(path)]
    with subprocess.Popen(command, env=environment, encoding="utf-8", errors="replace", **pipes) as child:
        timer = threading.Timer(LIMIT, child.kill)
        timer.start()
        try:
            text = child.stdout.read(MOST) if child.stdout else ""
            if len(text) < MOST:
                child.wait()  # for its exit status
            late = not timer.is_alive()
        finally:
            timer.cancel()
            child.kill()
    problem = ""
    if late or len(text) == MOST:
        problem = f"stopped after {f'{LIMIT} s' if late else f'{MOST:,} characters'}: is there a loop that never ends?"
    elif child.returncode:
        problem = "\n".join(text.splitlines()[-6:])
    found = list(STATION.finditer(text))
    starts, ends = [match.start() for match in found], [0, *(match.end() for match in found)]
    numbers = [text[end:start] for end, start in zip(ends, [*starts, len(text)], strict=True)]
    return Outcome(numbers, [match[0] for match in found], [match[3] == "ok" for match in found], problem)


def report(outcome: Outcome, before: list[bool]) -> None:
    """Print what has become right since `before`, how far the reader is, and the first station that is not right."""
    right, total = outcome.right, len(outcome.right)
    news = [i for i in range(total) if right[i] and not (i < len(before) and before[i])]
    print("".join(f"\n{paint(outcome.verdicts[i], 'green')}" for i in news), end="")
    print(f"\n[{''.join('#' if one else '.' for one in right)}] {sum(right)} of {total} stations are right\n")
    if outcome.problem:
        print(paint(outcome.problem, "red"))
    elif not all(right):
        i = right.index(False)
        print(f"{outcome.numbers[i]}{paint(outcome.verdicts[i], 'yellow')}", end="", flush=True)
    else:
        print(outcome.numbers[-1], end="", flush=True)

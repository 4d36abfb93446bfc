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
Backprop through a Transformer in one sitting: about 90 minutes with a pencil, ten stations. The file is copied to your
folder my_exercises and opened in the editor of $VISUAL or $EDITOR, if that has a window of its own. It is judged
whenever you save it, and mistakes are named:

  minitransformer sit
  minitransformer sit --once        judge the file once

As a notebook it is lessons/one_sitting.ipynb, which `minitransformer init FOLDER` copies. With --once the exit status
is 0 if everything is right, otherwise 1.
"""
IN_THE_TERMINAL = {"ed", "emacs", "helix", "hx", "joe", "kak", "micro", "nano", "nvim", "pico", "vi", "vim"}
LIMIT, MOST = 120, 200_000  # seconds, and characters of output, of one run
STATION = re.compile(r"^station \d+ of \d+, .+: (ok|WRONG|not finished|not written yet)\n(?:[ \t].*\n)*", re.MULTILINE)


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
    report(outcome, [])
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
            nothing = subprocess.DEVNULL
            child = subprocess.Popen([*editor, str(path)], stdin=nothing, stdout=nothing, stderr=nothing)
            threading.Thread(target=child.wait, daemon=True).start()  # it may stay open as long as it likes
            return
        except OSError as error:
            print(f"{editor[0]} cannot be started ({error.strerror})")
    print(
        f"open it in a second window, with {shlex.join(editor) or 'your editor'}; it is judged here whenever you save"
    )


def judge(path: Path) -> Outcome:
    """Run the file as its reader would, within limits."""
    environment = dict(os.environ, PYTHONIOENCODING="utf-8", OPENBLAS_NUM_THREADS="1", OMP_NUM_THREADS="1")
    command, nothing, out = [sys.executable, str(path)], subprocess.DEVNULL, subprocess.PIPE
    with subprocess.Popen(command, stdin=nothing, stdout=out, stderr=subprocess.STDOUT, env=environment) as child:
        timer = threading.Timer(LIMIT, child.kill)
        timer.start()
        try:
            printed = child.stdout.read(MOST) if child.stdout else b""
            endless = len(printed) == MOST or child.wait() < 0
        finally:
            timer.cancel()
            child.kill()
    text = printed.decode("utf-8", "replace").replace("\r\n", "\n")
    last = "\n".join(text.splitlines()[-6:]) if child.returncode else ""
    problem = f"stopped after {LIMIT} s or {MOST:,} bytes: is there a loop that never ends?" if endless else last
    found = list(STATION.finditer(text))
    starts, ends = [match.start() for match in found], [0, *(match.end() for match in found)]
    numbers = [text[end:start] for end, start in zip(ends, [*starts, len(text)], strict=True)]
    return Outcome(numbers, [match[0] for match in found], [match[1] == "ok" for match in found], problem)


def report(outcome: Outcome, before: list[bool]) -> None:
    """Print what has become right since `before`, how far the reader is, and the first station that is not right."""
    right = outcome.right
    for i, verdict in enumerate(outcome.verdicts):
        if right[i] and not any(before[i : i + 1]):
            print(f"\n{paint(verdict, 'green')}", end="")
    print(f"\n[{''.join('#' if one else '.' for one in right)}] {sum(right)} of {len(right)} stations are right\n")
    if outcome.problem:
        print(paint(outcome.problem, "red"), flush=True)
    elif all(right):
        print(outcome.numbers[-1], end="", flush=True)
    else:
        i = right.index(False)
        print(f"{outcome.numbers[i]}{paint(outcome.verdicts[i], 'yellow')}", end="", flush=True)

"""`minitransformer sit`: backprop through a Transformer in one sitting, judged whenever the file is saved."""

import argparse
import os
import re
import shlex
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any, NamedTuple

from minitransformer.cli.check import wait_for_change
from minitransformer.course import FOLDER
from minitransformer.exercises.options import add_workshop_arguments
from minitransformer.exercises.report import paint
from minitransformer.exercises.runner import ENVIRONMENT, LIMITS
from minitransformer.exercises.workshop import Workshop
from minitransformer.system.children import Head, run_child
from minitransformer.system.files import atomic_write, kind_of, read_bytes
from minitransformer.system.terminal import shown

DESCRIPTION = """\
Backprop through a Transformer in one sitting: about 90 to 120 minutes with a pencil, ten stations. The file is copied
to your folder my_exercises and opened in the editor of $VISUAL or $EDITOR, if that has a window of its own. It is
judged whenever you save it, and mistakes are named:

  minitransformer sit
  minitransformer sit --once        judge the file once

As a notebook it is lessons/one_sitting.ipynb, which `minitransformer init FOLDER` copies. With --once the exit status
is 0 if all stations and the whole backward are right, otherwise 1.
"""
IN_THE_TERMINAL = {"ed", "emacs", "helix", "hx", "joe", "kak", "micro", "nano", "nvim", "pico", "vi", "vim"}
LIMIT, MOST = 120, 200_000  # seconds, and bytes of output, of one run
STATION = re.compile(r"^station ([1-9]|10) of 10, .+: (ok|WRONG|not .+)\n(?:[ \t].*\n)*", re.MULTILINE)
LESSON = re.compile(r"(?<=\]\()(?=\d\d_\w+\.py\)|one_sitting\.ipynb\))")
EXPLORER = re.compile(r"See \[[^]]+\]\(\.\./minitransformer/explorer/[^)]+&cell=([^)]+)\)")
COMMAND = r"In the explorer (`minitransformer explore`): \1"  # instead of that link, where the page is not at hand


class Outcome(NamedTuple):
    """What a run of the file printed, station by station."""

    numbers: list[str]  # what was printed before each verdict, since the one before
    verdicts: list[str]
    right: list[bool]  # of each station
    rest: str  # what was printed after the last verdict
    problem: str  # what ended the run early, or ""
    whole: bool  # whether all stations and all gradients are right


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's own arguments."""
    parser.add_argument("--once", action="store_true", help="judge the file once, and open no editor")
    add_workshop_arguments(parser)


def run(arguments: argparse.Namespace) -> tuple[int, Any]:
    """Copy the file, open it, and judge it after each save."""
    path = Workshop(arguments.folder).path / "one_sitting.py"
    if not kind_of(path):
        with atomic_write(path) as partial:
            text = EXPLORER.sub(COMMAND, (FOLDER / "one_sitting.py").read_text("utf-8"))
            partial.write_text(LESSON.sub("../lessons/", text), "utf-8")
    print(f"read and write in {shown(path)}", flush=True)
    if not arguments.once:
        open_editor(path)
    outcome = judge(path)
    report(outcome, [])
    while not arguments.once:
        wait_for_change([path])
        print("\nsaved; judging ...", flush=True)
        before, outcome = outcome.right, judge(path)
        report(outcome, before)
    return 0 if outcome.whole else 1, {"path": str(path), "right": outcome.right, "whole": outcome.whole}


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
    print(f"open it in a second window, with {shlex.join(editor) or 'your editor'}; each save is judged here")


def judge(path: Path) -> Outcome:
    """Run the file as its reader would, within limits, and find the stations in what it prints."""
    environment = {**os.environ, **ENVIRONMENT, "PYTHONIOENCODING": "utf-8"}
    command, late, status = [sys.executable, "-u", str(path)], False, 1
    with Head(MOST) as out:
        streams: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": out, "stderr": subprocess.STDOUT}
        try:
            status = run_child(command, LIMIT, 0.0, LIMITS, env=environment, **streams)
        except subprocess.TimeoutExpired:
            late = True
    text = out.kept.decode("utf-8", "replace").replace("\r\n", "\n")
    problem = "\n".join(text.splitlines()[-7:]) if status or "the whole: " not in text else ""
    if late or len(out.kept) == MOST:
        how = f"{LIMIT} s" if late else f"{MOST:,} bytes of output: is there still a print in a function, or"
        problem = f"stopped after {how}{':' if late else ''} is there a loop that never ends?"
    elif re.search(r"^(Syntax|Indentation|Tab)Error: ", problem, re.MULTILINE):
        problem = f"the file cannot be read yet:\n{problem}"
    elif not read_bytes(path).strip():
        problem = "the file is empty: delete it, and the command makes a fresh copy"
    numbers, right, end = [""] * 10, [False] * 10, 0
    verdicts = [f"station {i} of 10: the file does not judge it. Is the function renamed?\n" for i in range(1, 11)]
    for match in STATION.finditer(text):
        i = int(match[1]) - 1
        numbers[i], end = text[end : match.start()], match.end()
        verdicts[i], right[i] = match[0], match[2] == "ok"
    whole = all(right) and "the whole: all " in text[end:] and not problem
    return Outcome(numbers, verdicts, right, text[end:], problem, whole)


def report(outcome: Outcome, before: list[bool]) -> None:
    """Print what has become right since `before`, how far the reader is, and the first station that is not right."""
    new = [i for i, one in enumerate(outcome.right) if one and not any(before[i : i + 1])]
    for i in new:  # at the start, when nothing is known of before, all but the last in one line
        verdict = outcome.verdicts[i] if before or i == new[-1] else outcome.verdicts[i].partition("\n")[0]
        print(f"\n{paint(verdict.rstrip(), 'green')}")
    right = outcome.right
    print(f"\n[{''.join('#' if one else '.' for one in right)}] {sum(right)} of 10 stations are right\n")
    if outcome.problem:
        print(paint(outcome.problem, "red"), flush=True)
    elif all(right):
        print(outcome.rest, end="", flush=True)
    else:
        i = right.index(False)
        print(f"{outcome.numbers[i]}{paint(outcome.verdicts[i], 'yellow')}", end="", flush=True)

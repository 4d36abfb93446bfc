"""`minitransformer sit`: backprop through a Transformer in one sitting, judged whenever the file is saved."""

import argparse
import ast
import os
import re
import shlex
import subprocess
import sys
import threading
import traceback
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

from minitransformer.cli.check import stamp, wait_for_change
from minitransformer.course import FOLDER, lessons_folder
from minitransformer.exercises.options import add_workshop_arguments
from minitransformer.exercises.report import paint
from minitransformer.exercises.runner import ENVIRONMENT, LIMITS
from minitransformer.exercises.workshop import SITTING, Workshop
from minitransformer.system.children import Head, run_child
from minitransformer.system.files import atomic_write, kind_of, read_bytes
from minitransformer.system.terminal import shown

DESCRIPTION = """\
Backprop through a Transformer in one sitting, with a pencil: ten stations. It takes about 150 minutes if this is new to
you, best on two evenings, and else 90 to 120. The file is copied to your folder my_exercises and opened in the editor
of $VISUAL or $EDITOR, if that has a window of its own. Whenever you save it, each station that you have changed is
judged, and mistakes are named:

  minitransformer sit
  minitransformer sit --once        judge the file once

As a notebook it is lessons/one_sitting.ipynb, which `minitransformer init FOLDER` copies. With --once the exit status
is 0 if all stations and the whole backward are right, otherwise 1.
"""
IN_THE_TERMINAL = {"ed", "emacs", "helix", "hx", "joe", "kak", "micro", "nano", "nvim", "pico", "vi", "vim"}
LIMIT, MOST = 120, 200_000  # seconds, and bytes of output, of one run
STATION = re.compile(r"^station ([1-9]|10) of 10, .+: (ok|WRONG|not .+)\n(?:[ \t].*\n)*", re.MULTILINE)
HINT = re.compile(r"^    hint \d of \d for .+\n(?:      .*\n)*", re.MULTILINE)
HALF = re.compile(r"^half done: .+\n(?:[ \t].*\n)*", re.MULTILINE)
LESSON = re.compile(r"(?<=\]\()(?=\d\d_\w+\.py\)|one_sitting\.ipynb\))")
EXPLORER = re.compile(r"See \[[^]]+\]\(\.\./minitransformer/explorer/[^)]+&cell=([^)]+)\)")
COMMAND = r"In the explorer (`minitransformer explore`): \1"  # instead of that link, where the page is not at hand


class Look(NamedTuple):
    """What the file has and what it printed, station by station."""

    code: list[str]  # of the functions of each station
    right: list[bool]  # of each station
    numbers: list[str]  # what was printed before each verdict, since the one before
    verdicts: list[str]
    hints: list[str]
    half: str  # what was printed at the midpoint
    rest: str  # what was printed after the last verdict
    problem: str  # what ended the run early, or ""
    whole: bool  # whether all stations and all gradients are right


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's own arguments."""
    parser.add_argument("--once", action="store_true", help="judge the file once, without opening an editor")
    add_workshop_arguments(parser)


def run(arguments: argparse.Namespace) -> tuple[int, Any]:
    """Copy the file, open it, and judge it after each save."""
    workshop = Workshop(arguments.folder)
    path, ours = workshop.path / "one_sitting.py", (FOLDER / "one_sitting.py").read_text("utf-8")
    if not kind_of(path):
        with atomic_write(path) as partial:
            lessons = Path(os.path.relpath(lessons_folder(), workshop.path)).as_posix()
            partial.write_text(LESSON.sub(f"{lessons}/", EXPLORER.sub(COMMAND, ours)), "utf-8")
    print(f"read and write in {shown(path)}", flush=True)
    if not arguments.once:
        open_editor(path)
    right = [number in workshop.noted(SITTING, "stations", []) for number in range(1, 11)]
    look = Look(code_of(ours), right, [""] * 10, [""] * 10, [], "", "", "", False)
    while True:
        judged, before, look = {path: stamp(path)}, look, judge(path, look)  # a save while it is judged counts
        report(look, before)
        workshop.note(SITTING, stations=[number for number, one in enumerate(look.right, 1) if one])
        if arguments.once:
            return 0 if look.whole else 1, {"path": str(path), "right": look.right, "whole": look.whole}
        wait_for_change(judged)
        print("\nsaved; judging ...", flush=True)


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


def code_of(text: str | bytes) -> list[str]:
    """The functions of each station in a file with this `text`, without comments. SyntaxError if it is no Python."""
    stations = re.findall(r"^judge\((.+)\)$", (FOLDER / "one_sitting.py").read_text("utf-8"), re.MULTILINE)
    functions = [node for node in ast.walk(ast.parse(text, "one_sitting.py")) if isinstance(node, ast.FunctionDef)]
    code = {function.name: ast.unparse(function) for function in functions}
    return ["\n".join(code.get(name, "") for name in names.split(", ")) for names in stations]


def judge(path: Path, before: Look) -> Look:
    """Run the file as its reader would, within limits, and find the stations in what it prints.

    If it cannot be read, all is as it was `before`, except for the problem.
    """
    text = read_bytes(path)
    try:
        code = code_of(text)
    except (SyntaxError, ValueError) as error:
        problem = "".join(traceback.format_exception_only(error))
        return before._replace(problem=f"the file cannot be read yet:\n{problem}", hints=[], whole=False)
    printed, problem = run_limited(path)
    if not text.strip():
        problem = "the file is empty: delete it, and the command makes a fresh copy"
    hints, half = HINT.findall(printed), "".join(HALF.findall(printed))
    printed = HALF.sub("", HINT.sub("", printed))
    unjudged = "" if problem else "the file does not judge it. Is the function renamed?"
    verdicts = [unjudged and f"station {number} of 10: {unjudged}\n" for number in range(1, 11)]
    numbers, right, end = [""] * 10, [False] * 10, 0
    for match in STATION.finditer(printed):
        i = int(match[1]) - 1
        numbers[i], end = printed[end : match.start()], match.end()
        verdicts[i], right[i] = match[0], match[2] == "ok"
    whole = all(right) and "the whole: all " in printed[end:] and not problem
    return Look(code, right, numbers, verdicts, hints, half, printed[end:], problem, whole)


def run_limited(path: Path) -> tuple[str, str]:
    """What a run of the file prints, and the problem that ended it early, or ""."""
    environment = {**os.environ, **ENVIRONMENT, "PYTHONIOENCODING": "utf-8"}
    command, late, status = [sys.executable, "-u", str(path)], False, 1
    with Head(MOST) as out:
        streams: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": out, "stderr": subprocess.STDOUT}
        try:
            status = run_child(command, LIMIT, 0.0, LIMITS, env=environment, **streams)
        except subprocess.TimeoutExpired:
            late = True
    printed = out.kept.decode("utf-8", "replace").replace("\r\n", "\n")
    if late or len(out.kept) == MOST:
        how = f"{LIMIT} s:" if late else f"{MOST:,} bytes of output: is there still a print in a function, or"
        return printed, f"stopped after {how} is there a loop that never ends?"
    return printed, "\n".join(printed.splitlines()[-7:]) if status or "the whole: " not in printed else ""


def report(look: Look, before: Look) -> None:
    """Print what is new since `before`: how far the reader is, hints, and each station that was changed.

    If none of these is wrong, the first station that is not right comes next.
    """
    right = look.right
    stations = [i for i in range(10) if (look.code[i], right[i]) != (before.code[i], before.right[i])]
    passed = [i for i in stations if right[i]]
    for i in passed:  # at the start, when no verdict is known, all but the last in one line
        short = before.right[i] or (not any(before.verdicts) and i != passed[-1])
        verdict = look.verdicts[i].partition("\n")[0] if short else look.verdicts[i]
        print(f"\n{paint(verdict.rstrip(), 'green')}")
    if all(right[:5]) and not all(before.right[:5]) and look.half:
        print(f"\n{paint(look.half.rstrip(), 'green')}")
    print(f"\n[{''.join('#' if one else '.' for one in right)}] {sum(right)} of 10 stations are right\n")
    hints = "".join((Counter(look.hints) - Counter(before.hints)).elements())
    told = [i for i in stations if not right[i] and look.verdicts[i]]
    if not told and not hints and not look.problem and not all(right):
        told = [right.index(False)]
    wrong = "\n".join(f"{look.numbers[i]}{paint(look.verdicts[i], 'yellow')}" for i in told)
    end = paint(look.problem, "red") + "\n" if look.problem else look.rest if all(right) else ""
    print("\n".join(part for part in (hints, wrong, end) if part), end="", flush=True)

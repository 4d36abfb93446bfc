"""`minitransformer blank`: a Transformer from a blank file, judged whenever it is saved."""

import argparse
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from minitransformer.cli.check import stamp, wait_for_change
from minitransformer.cli.sit import LIMIT, MOST, open_editor
from minitransformer.course import FOLDER
from minitransformer.exercises.runner import ENVIRONMENT, LIMITS
from minitransformer.system.children import Head, run_child
from minitransformer.system.files import atomic_write, kind_of
from minitransformer.system.terminal import shown

DESCRIPTION = """\
Write a Transformer into a blank file, forward and backward, in a style of your own (lesson 26). The file is made with a
docstring, which says what a piece is, and nothing else. Whenever you save it, each piece is checked against the complex
step, and then the whole model. Once all is right, it learns to reverse words, and is asked 1,000 that it has not seen:

  minitransformer blank my_transformer.py
  minitransformer blank my_transformer.py --once     judge the file once

With --once the exit status is 0 if all of this ends well, otherwise 1.
"""
CALL = f"import sys; sys.path.insert(0, {str(FOLDER)!r}); from support.blank import main; main(*sys.argv[1:])"


class Live(Head):
    """The beginning of what a child prints, printed here as it comes."""

    def _read(self, reading: int) -> None:
        with open(reading, encoding="utf-8", errors="replace") as stream:
            while len(self.kept) < self.most and (line := stream.readline(self.most)):
                self.kept += line.encode()
                print(line, end="", flush=True)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's own arguments."""
    parser.add_argument("file", metavar="FILE", type=Path, help="your file, such as my_transformer.py; made if missing")
    parser.add_argument("--once", action="store_true", help="judge the file once, without opening an editor")


def run(arguments: argparse.Namespace) -> tuple[int, Any]:
    """Make the file, open it, and judge it after each save."""
    path = arguments.file
    if path.suffix != ".py" or kind_of(path) == "folder":
        raise ValueError(f"{path} is not the name of a Python file, such as my_transformer.py")
    if not kind_of(path):
        with atomic_write(path) as partial:
            text = (FOLDER / "blank_file.py").read_text("utf-8")
            partial.write_text(text.replace("my_transformer.py", path.name), "utf-8")
    print(f"read and write in {shown(path)}", flush=True)
    if not arguments.once:
        open_editor(path)
    while True:
        judged, status = {path: stamp(path)}, judge(path)  # a save while it is judged counts
        if arguments.once:
            return status, {"path": str(path), "right": status == 0}
        wait_for_change(judged)
        print("\nsaved; judging ...", flush=True)


def judge(path: Path) -> int:
    """Prove and then train, each in a process within limits -> 0 if all is right, else 1."""
    environment = {**os.environ, **ENVIRONMENT, "PYTHONIOENCODING": "utf-8"}
    for part, seconds in (("prove", LIMIT), ("teach", None)):
        command = [sys.executable, "-c", CALL, str(path), part]
        with Live(MOST) as out:
            streams: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": out}
            try:
                status = run_child(command, seconds, 0.0, LIMITS, env=environment, **streams)
            except subprocess.TimeoutExpired:
                print(f"stopped after {seconds} s: is there a loop that never ends?", flush=True)
                return 1
        if status:
            return 1
    return 0

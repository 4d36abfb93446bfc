"""Run lessons in full and keep what each of their cells prints, for the pages of the site: docs/outputs/NN_name.json.

    python docs/record_outputs.py 05         run lesson 05
    python docs/record_outputs.py sitting    run one_sitting.py as it is handed out, and write its notebook
    python docs/record_outputs.py            run all lessons (about four minutes)

Do this after a change of a lesson's code. A test compares each cell with the source that its output was printed by.
"""

import contextlib
import io
import json
import os
import runpy
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "lessons"))  # for the lessons, and what the site reads

import numpy as np
from course_site.asking import LINE, LINES
from course_site.percent import LESSONS, OUTPUTS, SITTING, read_cells

from minitransformer.cli.init import as_notebook
from minitransformer.course import LessonInfo, find_lesson, find_lessons, read_record
from minitransformer.system.files import atomic_write

WIDTH = "88"  # of the lines that are wrapped


def run(path: Path) -> tuple[list[dict[str, str]], dict[str, Any]]:
    """Run a lesson's cells one after another, as a notebook would -> what each printed; the hands."""
    sys.argv, variables, cells, hands = [str(path)], {"__name__": "__main__"}, [], {}
    for cell in read_cells(path.read_text("utf-8")):
        if cell.prose:
            continue
        code = compile("\n" * (cell.line - 1) + cell.source, str(path), "exec")
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            exec(code, variables)
        cells.append({"source": cell.digest, "printed": printed.getvalue().strip("\n")})
        for name in LINE.findall(cell.source):
            if f"{path.name[:2]}.{name[0]}" in LINES:
                hands[name[0]] = hands_of(path.stem, name[0], variables)
    return cells, hands


def hands_of(lesson: str, name: str, variables: dict[str, Any]) -> dict[str, Any]:
    """What a lesson's checks say about a line: the right numbers, and those of each known mistake."""
    right, mistakes = runpy.run_path(str(LESSONS / "checks" / f"{lesson}.py"))["HANDS"][name]
    seen = SimpleNamespace(**variables)
    return {"right": digits(right(seen)), "wrong": {said: digits(wrong(seen)) for said, wrong in mistakes.items()}}


def digits(values: Any) -> str:
    """Numbers on one line, with as many digits as it takes to tell mistakes apart."""
    return " ".join(f"{value:.6g}" for value in np.ravel(values))


def record(lesson: LessonInfo) -> None:
    """Run the lesson and write its outputs."""
    cells, hands = run(lesson.path)
    write(lesson.name, {"examples": read_record(lesson)["examples"], "hands": hands, "cells": cells})


def record_sitting() -> None:
    """The same for the sitting, which is no lesson, and its notebook."""
    write(SITTING.stem, {"examples": ["cross.ds"], "cells": run(SITTING)[0]})
    SITTING.with_suffix(".ipynb").write_text(as_notebook(SITTING.read_text("utf-8")), "utf-8")


def write(name: str, found: dict[str, Any]) -> None:
    """Write the outputs of a lesson."""
    OUTPUTS.mkdir(exist_ok=True)
    with atomic_write(OUTPUTS / f"{name}.json") as partial:
        partial.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", "utf-8")
    print(f"wrote docs/outputs/{name}.json")


def main(numbers: list[str]) -> int:
    """Record the lessons with these numbers, by default all, each in a process of its own -> exit status."""
    os.environ.update(COLUMNS=WIDTH, MINITRANSFORMER_FAST="")
    if numbers == ["sitting"]:
        record_sitting()
        return 0
    if len(numbers) == 1:
        record(find_lesson(numbers[0], LESSONS))
        return 0
    for number in numbers or [lesson.number for lesson in find_lessons(LESSONS)]:
        status = subprocess.run([sys.executable, str(Path(__file__)), number]).returncode
        if status:
            return status
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

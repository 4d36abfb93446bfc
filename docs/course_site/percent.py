"""Lessons as cells, and the text that each cell printed when the lesson was run in full.

A lesson is a script in the percent format: `# %% [markdown]` begins a cell of prose, written as comments, and `# %%` a
cell of code, which is folded if it has one of the titles FOLDED.
docs/outputs/NN_name.json holds what its cells printed; docs/record_outputs.py writes it.
"""

import hashlib
import json
import re
from pathlib import Path
from typing import Any, NamedTuple

from minitransformer.course import FOLDED

ROOT = Path(__file__).resolve().parents[2]
LESSONS, OUTPUTS = ROOT / "lessons", ROOT / "docs" / "outputs"
SITTING = LESSONS / "one_sitting.py"
# a paragraph of a lesson: a task for the reader, as a link to the array of the explorer that answers it
TASK = re.compile(
    r"^\[(In the explorer: [^\]]+)\]\(\.\./minitransformer/(explorer)/page/(index\.html#embed=[^)]+)\)$",
    flags=re.MULTILINE,
)
CELL = re.compile(r"^# %%(.*)\n", flags=re.MULTILINE)


class Cell(NamedTuple):
    """A cell of a lesson."""

    prose: bool
    source: str  # Markdown, or Python
    line: int  # where the source begins, from 1
    title: str = ""  # one of FOLDED

    @property
    def digest(self) -> str:
        """A short name of the source, which changes with it."""
        return hashlib.sha256(self.source.encode()).hexdigest()[:16]


def read_cells(text: str) -> list[Cell]:
    """The cells of a lesson's text, in order."""
    _, *parts = CELL.split(text)
    cells, line = [], 1
    for kind, body in zip(parts[::2], parts[1::2], strict=True):
        prose = kind.strip() == "[markdown]"
        lines = body.splitlines()
        if prose:
            lines = [line[2:] if line.startswith("# ") else line.removeprefix("#") for line in lines]
        cells.append(
            Cell(prose, "\n".join(lines).strip("\n"), line + 1, kind.strip() if kind.strip() in FOLDED else "")
        )
        line += body.count("\n") + 1
    return cells


def read_outputs(name: str) -> dict[str, Any] | None:
    """What the lesson's run left: {"examples": [...], "cells": [{"source": digest, "printed": text}]}, or None."""
    path = OUTPUTS / f"{name}.json"
    return json.loads(path.read_text("utf-8")) if path.exists() else None


def stale_cells(text: str, outputs: dict[str, Any] | None) -> list[Cell]:
    """The code cells of a lesson's text whose source is not the one that the outputs were printed by."""
    code = [cell for cell in read_cells(text) if not cell.prose]
    recorded = [cell["source"] for cell in outputs["cells"]] if outputs else []
    same = len(recorded) == len(code)
    return [cell for i, cell in enumerate(code) if not (same and recorded[i] == cell.digest)]

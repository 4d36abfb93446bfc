"""Printed tables, and the names of the running example's rows and columns: it reads "stop" and writes "pots"."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from minitransformer.system import terminal

SOURCE, TARGET_IN, TARGET_OUT = [*"stop"], ["bos", *"pots"], [*"pots", "eos"]
ROWS = [f"{read}→{write}" for read, write in zip(TARGET_IN, TARGET_OUT, strict=True)]  # of the decoder
VOCABULARY = ["pad", "bos", "eos", *"opst"]


def show(
    title: str,
    values: Any,
    rows: Sequence[Any] | None = None,
    columns: Sequence[Any] | None = None,
    digits: int = 3,
) -> None:
    """Print a matrix or a vector as a table, with the names of its rows and columns if given.

    Columns for which the terminal is too narrow come below the others.
    """
    table = [[f"{value + 0.0:.{digits}f}" for value in row] for row in np.atleast_2d(np.round(values, digits))]
    names = ["" if rows is None else str(rows[i]) for i in range(len(table))]
    head = [[str(name) for name in columns]] if columns is not None else []
    width = max(len(text) for row in head + table for text in row)
    indent, count = max(map(len, names)) + 4, len(table[0])
    if indent + count * (width + 2) > terminal.width():
        indent -= 3
    blocks = math.ceil(count / max(1, (terminal.width() - indent) // (width + 2)))
    size = math.ceil(count / blocks)
    print(title)
    for start in range(0, count, size):
        for name, row in zip([""] * len(head) + names, head + table, strict=True):
            print(name.rjust(indent), *(text.rjust(width) for text in row[start : start + size]), sep="  ")

"""Printed tables, and the names of the running example's rows and columns: it reads "stop" and writes "pots"."""

from collections.abc import Sequence
from typing import Any

import numpy as np

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
    """Print a matrix or a vector as a table, with the names of its rows and columns if given."""
    table = [[f"{value + 0.0:.{digits}f}" for value in row] for row in np.atleast_2d(np.round(values, digits))]
    names = ["" if rows is None else str(rows[i]) for i in range(len(table))]
    head = [[str(name) for name in columns]] if columns is not None else []
    width = max(len(text) for row in head + table for text in row)
    indent = max(map(len, names)) + 4
    print(title)
    for name, row in zip([""] * len(head) + names, head + table, strict=True):
        print(name.rjust(indent), *(text.rjust(width) for text in row), sep="  ")

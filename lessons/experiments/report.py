"""What experiments take and report: their options, rows, and one kind of table, for the terminal and for pages."""

import argparse
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

Options = argparse.Namespace
Parser = argparse.ArgumentParser
Rows = dict[str, list[dict[str, Any]]]  # all that was measured, as JSON can hold it
Figure = Any  # matplotlib's, which is imported only when something is drawn


class Table(NamedTuple):
    """Cells that are already formatted, one list for each row."""

    title: str
    columns: Sequence[str]
    cells: Sequence[Sequence[str]]


def as_text(table: Table) -> str:
    """The table for a terminal: the first column begins at the left, all others end at the right."""
    lines = [table.columns, *table.cells]
    widths = [max(len(line[i]) for line in lines) for i in range(len(table.columns))]
    printed = [
        "  ".join(
            cell.rjust(width) if i else cell.ljust(width)
            for i, (cell, width) in enumerate(zip(line, widths, strict=True))
        )
        for line in lines
    ]
    return "\n".join([f"{table.title}\n" if table.title else "", *(line.rstrip() for line in printed)]).lstrip("\n")


def as_markdown(table: Table) -> str:
    """The table for a page, without its title."""
    lines = [table.columns, ["---"] * len(table.columns), *table.cells]
    return "\n".join(f"| {' | '.join(line)} |".replace("  ", " ") for line in lines)


def pivot(
    title: str, rows: Iterable[Mapping[str, Any]], first: str, across: str, value: str, form: str = "", unit: float = 1
) -> Table:
    """One line for each `first` and one column for each `across` of the rows, with `value` times `unit` in it."""
    found = {(row[first], row[across]): row.get(value) for row in rows}
    names, columns = (list(dict.fromkeys(key[i] for key in found)) for i in range(2))
    cells = [[str(name), *(cell(found.get((name, column)), form, unit) for column in columns)] for name in names]
    return Table(title, [first, *(f"{column:,}" if isinstance(column, int) else column for column in columns)], cells)


def cell(value: Any, form: str = "", unit: float = 1) -> str:
    """A number times `unit`, formatted; None, which was not measured, is empty."""
    if value is None or isinstance(value, str):
        return value or ""
    return format(value * unit if unit != 1 else value, form)

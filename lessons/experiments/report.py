"""What experiments take and report: options, rows, one kind of table, for the terminal and for pages, and figures."""

import argparse
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from minitransformer.plotting import COLORS, mark_powers
from minitransformer.system.terminal import width

Options = argparse.Namespace
Parser = argparse.ArgumentParser
Rows = dict[str, list[dict[str, Any]]]  # all that was measured, as JSON can hold it
Figure = Any  # matplotlib's, which is imported only when something is drawn


class Table(NamedTuple):
    """Cells that are already formatted, one list for each row."""

    title: str
    columns: Sequence[str]
    cells: list[list[str]]


def as_text(table: Table) -> str:
    """The table for a terminal: the first column begins at the left, all others end at the right.

    Where the terminal is too narrow for it, each cell has a line.
    """
    lines = [table.columns, *table.cells]
    widths = [max(len(line[i]) for line in lines) for i in range(len(table.columns))]
    printed = [
        "  ".join(
            cell.rjust(width) if i else cell.ljust(width)
            for i, (cell, width) in enumerate(zip(line, widths, strict=True))
        )
        for line in lines
    ]
    if max(map(len, printed)) > width():
        longest = max(map(len, table.columns))
        printed = []
        for cells in table.cells:
            printed += [f"{column:<{longest}}  {cell}" for column, cell in zip(table.columns, cells, strict=True)]
            printed.append("")
    return "\n".join([f"{table.title}\n" if table.title else "", *(line.rstrip() for line in printed)]).strip("\n")


def as_markdown(table: Table) -> str:
    """The table for a page, without its title."""
    lines = [table.columns, ["---"] * len(table.columns), *table.cells]
    return "\n".join(f"| {' | '.join(line)} |".replace("  ", " ") for line in lines)


def listed(title: str, rows: Iterable[Mapping[str, Any]], columns: Mapping[str, tuple]) -> Table:
    """One line for each row. A column is (key, or a function of the row; and as in `cell`: the form, the unit)."""
    cells = [
        [cell(key(row) if callable(key) else row.get(key), *how) for key, *how in columns.values()] for row in rows
    ]
    return Table(title, list(columns), cells)


def entries(names: Sequence[Any], key: str, form: str) -> dict[str, tuple]:
    """Columns of `listed` for a list that each row has as `key`: {name: its entry}."""
    return {str(name): (lambda row, i=i: row[key][i], form) for i, name in enumerate(names)}


def unrolled(rows: Iterable[dict[str, Any]], x: str, y: str) -> list[dict[str, Any]]:
    """A row for each entry of the lists `x` and `y` in every row."""
    return [{**row, x: a, y: b} for row in rows for a, b in zip(row[x], row[y], strict=True)]


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


def grouped(rows: Iterable[Any], *names: str) -> dict[tuple, list[dict[str, Any]]]:
    """{the values of these names: the rows that have them, such as those of all seeds}, in their order."""
    found: dict[tuple, list[dict[str, Any]]] = {}
    for row in rows:
        found.setdefault(tuple(row[name] for name in names), []).append(row)
    return found


def by_name(rows: Iterable[dict[str, Any]], name: str) -> dict[Any, list[dict[str, Any]]]:
    """`grouped` by a single name -> {its value: the rows}."""
    return {value: found for (value,), found in grouped(rows, name).items()}


def draw_kinds(
    axis: Any, rows: Iterable[dict[str, Any]], kind: str, x: str, y: str, unit: float = 1, style: str = "o-"
) -> None:
    """A line of `y` times `unit` over `x` for each `kind` of the rows."""
    for color, (name, found) in zip(COLORS, by_name(rows, kind).items(), strict=False):
        values = [unit * row[y] for row in found]
        axis.plot([row[x] for row in found], values, style, color=color, markersize=4, label=name)


def draw_map(
    axis: Any, weights: Any, keys: Sequence[str], queries: Sequence[Any], most: float = 1.0, upright: bool = False
) -> Any:
    """Weights (T, S) from 0 to `most`, with the names of keys along the top and of queries down the side -> image."""
    image = axis.imshow(weights, vmin=0.0, vmax=most, aspect="auto")
    axis.set_xticks(range(len(keys)), keys, rotation=90 if upright else 0)
    axis.set_yticks(range(len(queries)), queries)
    axis.tick_params(length=0, top=True, labeltop=True, bottom=False, labelbottom=False)
    axis.spines[:].set_visible(False)
    return image


def name_ticks(axis: Any, places: Any) -> None:
    """Two logarithmic axes whose ticks are plain numbers: `places` on the horizontal one."""
    axis.set(xscale="log", yscale="log")
    axis.minorticks_off()
    axis.set_xticks(places, places)
    mark_powers(axis)


def legend_below(figure: Figure, *axes: Any, ncols: int = 4, **style: Any) -> None:
    """One legend below the figure, of all that has a label in these axes."""
    handles = [handle for axis in axes for handle in axis.get_legend_handles_labels()[0]]
    figure.legend(handles=handles, ncols=ncols, loc="outside lower center", **style)

"""The pictures of the lessons: matrices with their numbers, and shapes to scale. Blue is forward, orange gradient.

    figure = grids({"q (T, D)": q, "scores (T, S)": scores}, labels={"T": ["c", "a", "t"]})
    lesson.save(figure)

Every function that returns a figure places its parts in inches, so texts keep their size and distance.
graph.py draws computing graphs, architecture.py the whole model.
"""

import math
from collections.abc import Collection, Mapping, Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from minitransformer.plotting import BLUE, GREY, ORANGE, pyplot, text_width

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

BLACK = "#222222"
WIDEST = 8.1  # inches; at the resolution of the lessons' figures 890 pixels
CELL = 0.28  # inches: the height of a cell, and its least width
SIGN = 0.36  # inches: the width of a sign between rectangles
plt = pyplot()


def canvas(width: float, height: float) -> "tuple[Figure, Axes]":
    """A white figure of that size in inches, and axes over all of it whose coordinates are inches.

    figure, axes = canvas(6.4, 2.0)
    axes.text(3.2, 1.0, "in the middle", ha="center", va="center")
    """
    figure = plt.figure(figsize=(width, height), facecolor="white")
    figure.set_layout_engine("none")  # as an argument of figure(), it would be forgotten after the first savefig
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set(xlim=(0, width), ylim=(0, height), xticks=[], yticks=[])
    axes.set_axis_off()
    return figure, axes


def mix(color: str, share: float) -> tuple[float, ...]:
    """White with a `share`, from 0 to 1, of a color such as "#0072B2" -> (red, green, blue).

    pale = mix(BLUE, 0.2)
    axes.add_patch(plt.Rectangle((0, 0), 1, 1, facecolor=pale))
    """
    return tuple(1 - share * (1 - int(color[i : i + 2], 16) / 255) for i in (1, 3, 5))


def number(value: Any, digits: int = 2) -> str:
    """A number as the pictures write it: whole if its type is, with a real minus sign, and zero without one.

    number(-0.451) == "−0.45"
    number(-np.inf) == "−∞"
    """
    if isinstance(value, bool | np.bool_ | int | np.integer):
        return str(int(value)).replace("-", "−")
    if not math.isfinite(value):
        return "nan" if math.isnan(value) else "∞" if value > 0 else "−∞"
    text = f"{value:.{digits}f}"
    return (text.lstrip("-") if float(text) == 0 else text).replace("-", "−")


def matrix_text(values: Any, digits: int = 2) -> str:
    """A matrix, or a vector as one row, as lines of numbers in columns, for the edges of a `Graph`.

    matrix_text(np.array([[1.0, -2.0], [0.5, 0.0]]))
    graph.edge("dp", "ds", gradient=matrix_text(dp))
    """
    rows = [[number(value, digits) for value in row] for row in np.atleast_2d(values)]
    width = max(len(text) for row in rows for text in row)
    return "\n".join(" ".join(text.rjust(width) for text in row) for row in rows)


def grid(
    axes: "Axes",
    values: Any,
    rows: Sequence[str] | None = None,
    columns: Sequence[str] | None = None,
    title: str = "",
    digits: int = 2,
    color: str = BLUE,
    highlight: Collection[tuple[int, int]] | None = None,
) -> None:
    """Draw a matrix, or a vector as one row, as a table with its numbers, up to about 8 × 8.

    Positive cells are filled with `color` (BLUE forward, ORANGE for gradients), negative ones with gray, both stronger
    for larger values. The cells (row, column) in `highlight` get a frame. `rows` and `columns` are names beside them.
    ValueError for names that are more or fewer than the rows or columns.

    figure, axes = plt.subplots(figsize=(3, 2))
    grid(axes, weights, rows=["c", "a", "t"], columns=["c", "a", "t"], title="weights")
    """
    values = np.atleast_2d(values)
    R, C = values.shape
    for names, count, what in ((rows, R, "rows"), (columns, C, "columns")):
        if names is not None and len(names) != count:
            raise ValueError(f"{len(names)} names for {count} {what}")
    finite = np.abs(values[np.isfinite(values)].astype(float))
    largest = finite.max(initial=0.0) or 1.0
    for (i, j), value in np.ndenumerate(values):
        share = 0.5 * min(abs(float(value)) / largest, 1.0) if np.isfinite(value) else 0.15
        fill = mix(color if value > 0 else GREY, share)
        axes.add_patch(plt.Rectangle((j, i), 1, 1, facecolor=fill, edgecolor="white", linewidth=1.5))
        _write(axes, j + 0.5, i + 0.5, number(value, digits))
    axes.add_patch(plt.Rectangle((0, 0), C, R, fill=False, edgecolor=mix(GREY, 0.4), linewidth=0.8, clip_on=False))
    for i, j in highlight or ():
        axes.add_patch(plt.Rectangle((j, i), 1, 1, fill=False, edgecolor=BLACK, linewidth=1.6, clip_on=False, zorder=3))
    for i, name in enumerate(rows or ()):
        axes.annotate(name, (0, i + 0.5), (-4, 0), textcoords="offset points", ha="right", va="center", **_NAME)
    for j, name in enumerate(columns or ()):
        axes.annotate(name, (j + 0.5, 0), (0, 3), textcoords="offset points", ha="center", va="bottom", **_NAME)
    axes.set(xlim=(0, C), ylim=(R, 0), xticks=[], yticks=[])
    axes.set_axis_off()
    axes.set_title(title, pad=17 if columns else 5)


_NAME: dict[str, Any] = {"fontsize": 8, "color": GREY, "parse_math": False}  # a token may be "$"


def _write(axes: "Axes", x: float, y: float, text: str, **options: Any) -> None:
    """Text around a point, 8 points high and black unless `options` say something else."""
    axes.text(x, y, text, **{"ha": "center", "va": "center", "fontsize": 8, "color": BLACK, **options})


class _Matrix(NamedTuple):
    """One matrix of `grids`: what it needs and the inches that it takes."""

    name: str
    shape: str  # "(T, D) = 5 × 3"
    values: np.ndarray
    rows: Sequence[str] | None
    columns: Sequence[str] | None
    cell: float  # width of a cell
    left: float  # inches before the cells, for the rows' names
    width: float  # of all, with the names and the title

    @classmethod
    def of(cls, key: str, values: Any, labels: Mapping[str, Sequence[str]], digits: int) -> "_Matrix":
        """The matrix called `key`, such as "q (T, D)", whose letters say which labels it has."""
        name, _, letters = key.partition(" (")
        shape = " × ".join(map(str, np.shape(values)))
        axes = [letter.strip() for letter in letters.rstrip(")").split(",")]
        values = np.atleast_2d(values)
        rows = labels.get(axes[0]) if len(axes) == 2 else None
        columns = labels.get(axes[-1])
        texts = [number(value, digits) for value in values.flat] + list(columns or ())
        cell = max(CELL, max(map(text_width, texts)) + 0.1)
        beside = max(map(text_width, rows)) + 0.08 if rows else 0.0
        shape = f"({letters} = {shape}" if letters else shape
        titles = max(text_width(name, 10) * 1.1, text_width(shape))
        body = cell * values.shape[1]
        over = max(0.0, (titles - body) / 2)
        left = max(beside, over)
        return cls(name, shape, values, rows, columns, cell, left, left + body + over)


def grids(
    values_by_name: Mapping[str, Any],
    labels: Mapping[str, Sequence[str]] | None = None,
    gradients: Collection[str] = (),
    highlight: Mapping[str, Collection[tuple[int, int]]] | None = None,
    between: Sequence[str] = (),
    digits: int = 2,
    title: str = "",
) -> "Figure":
    """Matrices side by side with their names and shapes, in as many lines as they need -> Figure.

    A key such as "q (T, D)" is a name and the letters of the axes. `labels` gives the names along an axis by its
    letter. `gradients` and `highlight` use the name alone; `gradients` are drawn in orange. `between` holds the signs
    between one matrix and the next, such as "×", "=" and "softmax →".

    grids({"q (T, D)": q, "kᵀ (D, S)": k.T, "scores (T, S)": q @ k.T}, between="×=", labels={"T": list("cat")})
    grids({"dp (T, S)": dp, "ds (T, S)": ds}, gradients={"dp", "ds"}, highlight={"ds": [(0, 1)]})
    """
    matrices = [_Matrix.of(key, values, labels or {}, digits) for key, values in values_by_name.items()]
    lines = _in_lines(matrices, between)
    above = 0.62 if any(matrix.columns for matrix in matrices) else 0.46
    heights = [above + CELL * max(len(matrix.values) for matrix, _, _ in line) + 0.2 for line in lines]
    top = 0.35 if title else 0.0
    widths = [sum(gap + matrix.width for matrix, _, gap in line) for line in lines]
    width, height = max(*widths, text_width(title, 10)) + 0.3, sum(heights) + top
    figure, axes = canvas(width, height)
    _write(axes, width / 2, height - 0.2, title, fontsize=10)
    y = height - top
    for line, line_height, line_width in zip(lines, heights, widths, strict=True):
        x, middle = (width - line_width) / 2, y - above - (line_height - above - 0.2) / 2
        for matrix, sign, gap in line:
            _write(axes, x + gap / 2, middle, sign, fontsize=13)
            x += gap
            _place(figure, matrix, x, middle, digits, matrix.name in gradients, (highlight or {}).get(matrix.name))
            x += matrix.width
        y -= line_height
    return figure


def _in_lines(matrices: "Sequence[_Matrix]", between: Sequence[str]) -> "list[list[tuple[_Matrix, str, float]]]":
    """The matrices of `grids` in lines, each with the sign before it and the inches for that sign."""
    lines: list[list[tuple[_Matrix, str, float]]] = [[]]
    for matrix, sign in zip_longest(matrices, ["", *between][: len(matrices)], fillvalue=""):
        gap = max(0.42, text_width(sign, 13) + 0.16)
        if lines[-1] and sum(before + each.width for each, _, before in lines[-1]) + gap + matrix.width > WIDEST - 0.3:
            lines.append([])
        lines[-1].append((matrix, sign, gap if lines[-1] or sign else 0.0))
    return lines


def _place(
    figure: "Figure",
    matrix: _Matrix,
    x: float,
    y: float,
    digits: int,
    gradient: bool,
    highlight: Collection[tuple[int, int]] | None,
) -> None:
    """One matrix of `grids`, to the right of `x` and around the height `y`, with its name and shape above."""
    R, C = matrix.values.shape
    width, height = figure.get_size_inches()
    body, tall = matrix.cell * C, CELL * R
    middle, color = x + matrix.left + body / 2, ORANGE if gradient else BLUE
    box = ((middle - body / 2) / width, (y - tall / 2) / height, body / width, tall / height)
    axes = figure.add_axes(box)
    grid(axes, matrix.values, matrix.rows, matrix.columns, digits=digits, color=color, highlight=highlight)
    top = y + tall / 2 + (0.2 if matrix.columns else 0.05)
    _write(figure.axes[0], middle, top + 0.24, matrix.name, fontsize=10, weight="bold", color=color)
    _write(figure.axes[0], middle, top + 0.07, matrix.shape, color=GREY)


def rectangles(
    parts: Sequence[str | tuple[str, str, str]],
    sizes: Mapping[str, int],
    gradients: Collection[str] = (),
    title: str = "",
) -> "Figure":
    """Matrices in a row as rectangles to scale, with letters and lengths on their sides -> Figure.

    A part is a matrix, (name, letter of its rows, letter of its columns), a sign such as "×", or "\\n", which begins
    another row to the same scale. `sizes` gives the length of each letter; the letter "1" is 1 long. `gradients` are
    the names to draw in orange. KeyError for a letter without a length.

    rectangles([("q", "T", "D"), "×", ("kᵀ", "D", "S"), "=", ("scores", "T", "S")], sizes={"T": 5, "D": 3, "S": 4})
    rectangles([("x", "N", "C"), "+", ("b", "1", "C")], sizes={"N": 6, "C": 3}, title="Add a bias")
    """
    sizes = {"1": 1, **sizes}
    ends = [i for i, part in enumerate(parts) if part == "\n"]
    rows = [_Row.of(parts[i:j], sizes) for i, j in zip([0, *(end + 1 for end in ends)], [*ends, None], strict=True)]
    beside = 0.6  # inches in each row: a name below, a length above, and space
    unit = min(0.24, max(2.2, 4.0 - beside * len(rows)) / sum(row.tall for row in rows))
    unit = min(unit, *((WIDEST - row.taken) / row.wide for row in rows))
    width = max(*(row.width(unit) for row in rows), text_width(title, 10) + 0.3)
    height = unit * sum(row.tall for row in rows) + beside * len(rows) + (0.35 if title else 0.0)
    figure, axes = canvas(width, height)
    _write(axes, width / 2, height - 0.2, title, fontsize=10)
    top = height - (0.35 if title else 0.0)
    for row in rows:
        row.draw(axes, (width - row.width(unit)) / 2 + 0.15, top - 0.27 - unit * row.tall / 2, unit, gradients)
        top -= unit * row.tall + beside
    return figure


class _Row(NamedTuple):
    """One row of `rectangles`, and what it needs beside its rectangles."""

    parts: Sequence[str | tuple[str, str, str]]
    sizes: Mapping[str, int]
    tall: int  # the length of its longest column
    wide: int  # the lengths of all its rows together
    taken: float  # inches between the rectangles, for signs and lengths

    @classmethod
    def of(cls, parts: Sequence[str | tuple[str, str, str]], sizes: Mapping[str, int]) -> "_Row":
        """The row with these parts."""
        matrices = [part for part in parts if not isinstance(part, str)]
        tall = max(sizes[rows] for _, rows, _ in matrices)
        wide = sum(sizes[columns] for _, _, columns in matrices)
        signs = SIGN * (len(parts) - len(matrices))
        return cls(parts, sizes, tall, wide, sum(_side(part, sizes) for part in matrices) + signs + 0.3)

    def space(self, part: tuple[str, str, str], unit: float) -> float:
        """Inches for a rectangle, its name and its length."""
        name, _, columns = part
        return max(unit * self.sizes[columns], text_width(_length(columns, self.sizes)), text_width(name, 10) * 1.1)

    def width(self, unit: float) -> float:
        """Inches of the whole row."""
        return self.taken + sum(self.space(part, unit) for part in self.parts if not isinstance(part, str))

    def draw(self, axes: "Axes", x: float, y: float, unit: float, gradients: Collection[str]) -> None:
        """The row, to the right of `x` and around the height `y`."""
        for part in self.parts:
            if isinstance(part, str):
                _write(axes, x + SIGN / 2, y, part, fontsize=13)
                x += SIGN
                continue
            side, space = _side(part, self.sizes), self.space(part, unit)
            color = ORANGE if part[0] in gradients else BLUE
            _rectangle(axes, part, self.sizes, x + side + space / 2, y, unit, color)
            x += side + space


def _side(part: tuple[str, str, str], sizes: Mapping[str, int]) -> float:
    """Inches for the length that stands on the left of a rectangle."""
    return text_width(_length(part[1], sizes)) + 0.12


def _length(letter: str, sizes: Mapping[str, int]) -> str:
    """What stands on a side: "T = 5"; "1" alone."""
    return letter if letter == "1" else f"{letter} = {sizes[letter]}"


def _rectangle(
    axes: "Axes", part: tuple[str, str, str], sizes: Mapping[str, int], x: float, y: float, unit: float, color: str
) -> None:
    """One matrix of `rectangles` around the middle (x, y), in cells if they are few."""
    name, rows, columns = part
    R, C = sizes[rows], sizes[columns]
    left, low = x - unit * C / 2, y - unit * R / 2
    if max(R, C) <= 16:
        for i, j in np.ndindex(R, C):
            cell = plt.Rectangle((left + j * unit, low + i * unit), unit, unit, facecolor=mix(color, 0.2))
            axes.add_patch(cell)
            cell.set(edgecolor="white", linewidth=0.8)
    frame = plt.Rectangle((left, low), unit * C, unit * R, facecolor=mix(color, 0.2), edgecolor=color, linewidth=1.2)
    frame.set_fill(max(R, C) > 16)
    axes.add_patch(frame)
    _write(axes, x, low - 0.14, name, fontsize=10, weight="bold", color=color)
    _write(axes, x, low + unit * R + 0.1, _length(columns, sizes), color=GREY)
    _write(axes, left - 0.06, y, _length(rows, sizes), color=GREY, ha="right")

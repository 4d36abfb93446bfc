"""What is wrong with a figure: texts on each other, beyond the edge or too small, axes without names, hidden lines.

The figure is drawn with matplotlib's own renderer, which says which place each text takes.
"""

import inspect
import io
import itertools
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from matplotlib.text import Text

from minitransformer import plotting
from minitransformer.plotting import COLORS

SMALLEST = 7  # points
TOLERANCE = 0.5  # pixels


def leave_undrawn(patch, content=b""):
    """Let all functions that draw a figure save a file with this content instead, because drawing takes long."""

    def undrawn(function):
        def save(*arguments, **options):
            plotting.save_figure(Figure(), inspect.signature(function).bind(*arguments, **options).arguments["path"])

        return save

    patch.setattr(Figure, "savefig", lambda self, path, **options: Path(path).write_bytes(content))
    for name, function in vars(plotting).items():
        if name.startswith("plot_") and "path" in inspect.signature(function).parameters:
            patch.setattr(plotting, name, undrawn(function))


def faults(figure):
    """A list of sentences, which is empty for a figure without faults."""
    texts = [(text.get_text(), text.get_fontsize(), text.get_window_extent()) for text in drawn_texts(figure)]
    pairs = itertools.combinations(texts, 2)
    found = [f"{a!r} lies on {b!r}" for (a, _, one), (b, _, other) in pairs if touch(one, other)]
    for text, size, box in texts:
        if size < SMALLEST:
            found.append(f"{text!r} is too small")
        if not contains(figure.bbox, box):
            found.append(f"{text!r} leaves the figure")
    for axes in figure.axes:
        if not axes.get_visible():
            continue
        if axes.get_legend() is not None:
            box = axes.get_legend().get_window_extent()
            found += [f"the legend hides {line.get_label()!r}" for line in axes.lines if passes(line, box)]
            found += ["the legend hides a bar" for bar in axes.patches if touch(bar.get_window_extent(), box)]
        found += [f"no name on the {axis.axis_name} axis of {axes.get_title()!r}" for axis in unnamed(figure, axes)]
    return found


def unclear_lines(figure):
    """Lines that cannot be seen as a whole, that no legend explains, or whose colour is not in the palette -> list."""
    found = []
    for axes in figure.axes:
        low, high = axes.get_ylim()
        labels = [] if axes.get_legend() is None else [text.get_text() for text in axes.get_legend().get_texts()]
        for line in axes.lines:
            name = line.get_label()
            if len(line.get_xdata()) == 1 and line.get_marker() in ("None", None):
                found.append(f"{name!r} is a single point without a marker")
            if is_data(line) and not all(low <= y <= high for y in line.get_ydata()):
                found.append(f"{name!r} leaves its panel")
            if labels and labels.count(name) != 1:
                found.append(f"{name!r} is {labels.count(name)} times in the legend")
            if line.get_color() not in COLORS:
                found.append(f"{name!r} has the colour {line.get_color()}")
    return found


def is_data(line):
    """Whether a line shows data, and does not cross the axes as a bound."""
    return line.get_transform() == line.axes.transData


def drawn_texts(figure):
    """The texts that drawing the figure really draws, once each: not the ticks beyond an axis, for example."""
    texts = {}
    draw = Text.draw

    def record(self, *arguments, **options):
        if self.get_visible() and self.get_text().strip():
            texts[id(self)] = self
        return draw(self, *arguments, **options)

    Text.draw = record
    try:
        figure.savefig(io.BytesIO(), format="raw", dpi="figure")
    finally:
        Text.draw = draw
    return list(texts.values())


def touch(a, b):
    """Whether two boxes overlap."""
    width = min(a.x1, b.x1) - max(a.x0, b.x0)
    height = min(a.y1, b.y1) - max(a.y0, b.y0)
    return width > TOLERANCE and height > TOLERANCE


def contains(outer, inner):
    """Whether a box lies within another."""
    low = inner.x0 >= outer.x0 - TOLERANCE and inner.y0 >= outer.y0 - TOLERANCE
    return low and inner.x1 <= outer.x1 + TOLERANCE and inner.y1 <= outer.y1 + TOLERANCE


def passes(line, box):
    """Whether a line of the data, with its markers, passes through a box."""
    points = line.get_transform().transform(np.asarray(line.get_xydata(), dtype=float))
    points = points[np.isfinite(points).all(axis=1)]
    if len(points) > 1:
        share = np.linspace(0.0, 1.0, 50)[:, None, None]
        points = (points[:-1] * (1 - share) + points[1:] * share).reshape(-1, 2)
    low, high = np.array([box.x0, box.y0]), np.array([box.x1, box.y1])
    return bool(((points > low + TOLERANCE) & (points < high - TOLERANCE)).all(axis=1).any())


def unnamed(figure, axes):
    """The axes with numbers or names on their ticks, and no name of their own, of a neighbour's or the figure's."""
    for axis, shared, common in (
        (axes.xaxis, axes.get_shared_x_axes(), figure.get_supxlabel()),
        (axes.yaxis, axes.get_shared_y_axes(), figure.get_supylabel()),
    ):
        ticked = any(label.get_text() and label.get_visible() for label in axis.get_ticklabels())
        neighbours = shared.get_siblings(axes)
        named = common or any(getattr(other, f"get_{axis.axis_name}label")() for other in neighbours)
        if ticked and axis.get_visible() and not named:
            yield axis

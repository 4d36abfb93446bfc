"""All figures, and the one style they share. The only file that imports matplotlib, and only when a figure is drawn.

Every function writes a PNG to `path`. The same numbers give the same bytes.
"""

import logging
import math
import sys
import textwrap
import warnings
from collections.abc import Sequence
from os import PathLike
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from minitransformer.system.files import atomic_write

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Okabe and Ito's palette, which color-blind readers can tell apart
BLUE, ORANGE, GREEN, PINK, YELLOW, SKY = "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9"
GREY = "#777777"
COLORS = (BLUE, ORANGE, GREEN, PINK, YELLOW, SKY, GREY)
STYLE: dict[str, Any] = {
    "font.size": 9,
    "axes.titlesize": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "figure.constrained_layout.use": True,
    "figure.figsize": (6.4, 3.6),
    "image.cmap": "viridis",
    "legend.frameon": False,
    "savefig.dpi": 110,
}
NAME_SIZE, NAME_HEIGHT = 8, 0.14  # of a token's name beside an attention matrix: points, and inches
IN_NOTEBOOK = "ipykernel" in sys.modules


def pyplot() -> ModuleType:
    """Return matplotlib.pyplot in the project's style. Outside notebooks it draws to files only, on any machine."""
    logger = logging.getLogger("matplotlib")
    before = logger.level
    logger.setLevel(logging.ERROR)  # where it keeps its cache, if it may not write to HOME, is not our reader's concern
    try:
        import matplotlib

        if not IN_NOTEBOOK:
            matplotlib.use("Agg")
        import matplotlib.pyplot as plt
    finally:
        logger.setLevel(before)
    plt.style.use({**STYLE, "axes.prop_cycle": plt.cycler(color=COLORS)})
    return plt


def save_figure(figure: "Figure", path: str | PathLike[str]) -> None:
    """Write `figure` to `path` as a PNG without a date in it, and close it, except in a notebook, which shows it."""
    try:
        with atomic_write(path) as partial, warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Glyph", category=UserWarning)  # the font shows a box instead
            figure.savefig(partial, format="png", metadata={"Software": None}, bbox_inches="tight")
    finally:
        if not IN_NOTEBOOK:
            pyplot().close(figure)


def plot_training(history: Any, path: str | PathLike[str], title: str, floor: float | None = None) -> None:
    """Draw loss (nats per token) and learning rate over the steps.

    `history` has the lists `losses` and `learning_rates`, one number a step. `floor` is the lowest loss that label
    smoothing allows.
    """
    figure, (top, bottom) = pyplot().subplots(2, 1, figsize=(6.4, 4.6), sharex=True, height_ratios=(3, 1))
    _plot_losses(top, history.losses, "each step", "mean of the last {} steps", faint=True)
    if floor:
        top.axhline(floor, color=ORANGE, linestyle="--", linewidth=1, label=f"floor of label smoothing, {floor:.3f}")
    top.set(ylabel="loss (nats per token)", title=title)
    _begin_at_zero(top)
    top.legend()
    plot_line(bottom, np.arange(1, len(history.learning_rates) + 1), history.learning_rates, color=GREY)
    bottom.yaxis.set_major_formatter("{x:g}")
    bottom.set_ylabel("learning rate")
    _begin_at_zero(bottom)
    count_steps(bottom)
    save_figure(figure, path)


def plot_text_training(
    history: Any,
    steps: Sequence[int],
    bits: Sequence[float],
    path: str | PathLike[str],
    task: str,
    unit: str,
    names: tuple[str, str] = ("training text", "held-out text, a sample of windows"),
    per_unit: float = 1.0,
) -> None:
    """Draw the training loss, in bits (`history.losses` is in nats), and the held-out loss `bits` at `steps`.

    `task` is the name that the title says, `unit` what the losses are a mean over, such as "character", and `names` are
    those of the two lines. There are `per_unit` tokens in a unit.
    """
    figure, axis = pyplot().subplots()
    losses = np.array(history.losses) / math.log(2) * per_unit
    _plot_losses(axis, losses, names[0], f"{names[0]}, mean of the last {{}} steps", faint=False)
    title = f"Training loss of {task}"
    if steps:
        axis.plot(steps, bits, "o-", color=ORANGE, markersize=4, label=names[1])
        held_out = names[1].partition(",")[0]
        title = f"{task}: {bits[-1]:.2f} bits per {unit} on {held_out} after {counted(steps[-1], 'step')}"
    axis.set(ylabel=f"loss (bits per {unit})", title=title)
    _begin_at_zero(axis)
    count_steps(axis)
    axis.legend()
    save_figure(figure, path)


def plot_bleu(groups: Sequence[Any], bleu: float, path: str | PathLike[str]) -> None:
    """Draw BLEU for each of the groups of sources, from short to long, and that of the whole test.

    A group has the range of its `words`, the number of its `sentences`, and `bleu`.
    """
    figure, axis = pyplot().subplots()
    names = [f"{group.words}\n{counted(group.sentences, 'sentence')}" for group in groups]
    bars = axis.bar(range(len(groups)), [group.bleu for group in groups], color=BLUE, width=0.6)
    axis.bar_label(bars, fmt="%.1f", padding=2)
    axis.axhline(bleu, color=ORANGE, linestyle="--", linewidth=1, label=f"all sentences, {bleu:.1f}")
    axis.set_xticks(range(len(groups)), names)
    axis.set(title="BLEU by the length of the source", xlabel="words of the source", ylabel="BLEU")
    axis.margins(y=0.15)
    axis.legend()
    save_figure(figure, path)


def plot_attention(
    weights: np.ndarray,
    queries: Sequence[str],
    keys: Sequence[str],
    path: str | PathLike[str],
    title: str,
    query: str = "token to be written",
) -> None:
    """Draw one panel per head: weights (H, T, S), the T query tokens down the side, the S key tokens along the top.

    `query` says what the tokens down the side are. Where the tokens are too many for their names, only every second
    (third, ...) is named. A long name is cut.
    """
    H, T, S = weights.shape
    plt = pyplot()
    queries, keys = [shorten(name) for name in queries], [shorten(name) for name in keys]
    cell = min(0.165, 5.0 / max(T, S))  # all lengths are in inches
    above = max(NAME_HEIGHT, *map(text_width, keys))
    beside = max(map(text_width, queries)) + 0.35
    across, down = max(cell * S + 0.15, 0.8), cell * T + above + 0.35  # from one panel to the next
    rows, columns = _grid(H, per_row=int(11.0 / across))
    width, body = max(beside + columns * across + 0.85, 4.2), max(rows * down, 1.6)
    title = wrap(title, width)
    height = body + 0.2 * len(title.splitlines()) + 0.4
    figure = plt.figure(figsize=(width, height), layout="none")

    def place(x: float, y: float, w: float, h: float) -> Any:
        """An axes whose upper left corner is x to the right of the body's and y below it."""
        return figure.add_axes((x / width, (0.3 + body - y - h) / height, w / width, h / height))

    for head in range(H):
        row, column = divmod(head, columns)
        axis = place(beside + column * across, row * down + above + 0.3, cell * S, cell * T)
        image = _draw_weights(axis, weights[head], queries if column == 0 else [], keys, cell)
        axis.set_title(f"head {head + 1}", pad=above * 72 + 6)
    bar = min(2.0, body - 0.4)
    cax = place(beside + columns * across, 0.3 + (body - 0.3 - bar) / 2, 0.13, bar)
    figure.colorbar(image, cax=cax, label="attention weight")
    figure.supylabel(query, x=0.0, y=(0.3 + body / 2) / height, ha="left", fontsize=9)
    figure.supxlabel("token attended to", x=(beside + columns * across / 2) / width, y=0.0, va="bottom", fontsize=9)
    figure.suptitle(title, y=1.0, va="top")
    save_figure(figure, path)


def plot_samples(
    samples: Sequence[Any],
    path: str | PathLike[str],
    title: str,
    names: tuple[str, str, str] = ("attention weight", "token attended to", "token to be written"),
) -> None:
    """Draw a panel for each of the `samples` (weights (T, S), queries, keys); `names` are of weight, key and query."""
    rows, columns = _grid(len(samples), per_row=2)
    tall, wide = (max(len(each[side]) for each in samples) for side in (1, 2))
    cell = min(0.165, 6.0 / max(tall, wide))  # all lengths are in inches
    width, height = max(columns * (cell * wide + 1.0), 4.2), max(rows * (cell * tall + 0.8) + 0.6, 2.8)
    figure, axes = pyplot().subplots(rows, columns, figsize=(width, height), layout="constrained", squeeze=False)
    for axis, (weights, queries, keys) in zip(axes.flat, samples, strict=False):
        own_cell = cell * min(tall / len(queries), wide / len(keys))
        image = _draw_weights(axis, weights, [*map(shorten, queries)], [*map(shorten, keys)], own_cell)
    for axis in axes.flat[len(samples) :]:
        axis.set_visible(False)
    figure.colorbar(image, ax=axes, label=names[0], shrink=min(1.0, 2.0 / height))
    figure.supxlabel(names[1], fontsize=9)
    figure.supylabel(names[2], fontsize=9)
    figure.suptitle(wrap(title, width))
    save_figure(figure, path)


def plot_images(
    images: np.ndarray, weights: np.ndarray, names: Sequence[str], path: str | PathLike[str], title: str
) -> None:
    """Draw each of N images (N, H, W), dark where its numbers are large, above its attention weights (N, h, w)."""
    size = (1.05 * len(images) + 1.0, 2.8)
    figure, axes = pyplot().subplots(2, len(images), figsize=size, squeeze=False)
    for (top, bottom), pixels, p, name in zip(axes.T, images, weights, names, strict=True):
        top.imshow(pixels, cmap="gray_r")
        top.set_title(name, fontsize=NAME_SIZE)
        image = bottom.imshow(p, vmin=0.0, vmax=weights.max())
    for axis in axes.flat:
        axis.set(xticks=[], yticks=[])
    axes[0, 0].set_ylabel("image")
    axes[1, 0].set_ylabel("attention")
    figure.colorbar(image, ax=axes[1], label="attention weight")
    figure.suptitle(wrap(title, size[0]))
    save_figure(figure, path)


def _draw_weights(axis: Any, weights: np.ndarray, queries: Sequence[str], keys: Sequence[str], cell: float) -> Any:
    """The weights (T, S) of one head, in cells of `cell` inches -> the image. Without `queries` the rows have no names.

    A name that is wider than its place stands upright.
    """
    image = axis.imshow(weights, vmin=0.0, vmax=1.0, aspect="auto")
    every = math.ceil(NAME_HEIGHT / cell)
    axis.set_xticks(range(0, len(keys), every), keys[::every])
    axis.set_yticks(range(0, len(queries), every), queries[::every])
    axis.tick_params(length=0, pad=2, labelsize=NAME_SIZE, top=True, labeltop=True, bottom=False, labelbottom=False)
    axis.spines[:].set_visible(False)
    for label in axis.get_xticklabels():
        label.set_rotation(90 if text_width(label.get_text()) > every * cell else 0)
    for label in (*axis.get_xticklabels(), *axis.get_yticklabels()):
        label.set_parse_math(False)  # a token may be "$"
    return image


def plot_line(axis: Any, x: Any, y: Any, **style: Any) -> None:
    """A line; a single point, which a line would not show, as a dot."""
    axis.plot(x, y, marker="o" if len(x) == 1 else None, markersize=4, **style)


def _plot_losses(axis: Any, losses: Any, each: str, mean: str, faint: bool) -> None:
    """The running mean of the losses, and if `faint`, or if there are too few steps for a mean, the losses themselves.

    `each` and `mean` are the labels of the two; `mean` has a place for the number of steps.
    """
    steps, window = np.arange(1, len(losses) + 1), max(1, len(losses) // 50)
    if window == 1:
        plot_line(axis, steps, losses, color=BLUE, label=each)
        return
    if faint:
        plot_line(axis, steps, losses, color=BLUE, alpha=0.3, linewidth=0.7, label=each)
    plot_line(axis, steps[window - 1 :], moving_average(losses, window), color=BLUE, label=mean.format(window))


def _begin_at_zero(axis: Any) -> None:
    """Show the vertical axis from 0 to above the highest line."""
    values = np.concatenate([line.get_ydata() for line in axis.lines])
    axis.set_ylim(0, 1.06 * values[np.isfinite(values)].max(initial=0.0) or 1.0)


def mark_powers(axis: Any) -> None:
    """Ticks such as 1, 2, 5, 10 on a logarithmic vertical axis, as plain numbers."""
    from matplotlib.ticker import LogLocator, NullFormatter

    axis.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axis.yaxis.set_major_formatter("{x:,g}")
    axis.yaxis.set_minor_formatter(NullFormatter())


def count_steps(axis: Any) -> None:
    """Name the horizontal axis "step", with whole numbers."""
    axis.locator_params(axis="x", integer=True, min_n_ticks=1)
    axis.xaxis.set_major_formatter("{x:,.0f}")
    axis.set_xlabel("step")


def counted(count: int, noun: str) -> str:
    """ "1 step", "2,400 steps"."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def _grid(panels: int, per_row: int) -> tuple[int, int]:
    """(rows, columns) for so many panels, at most `per_row` in a row and as many in each as possible."""
    rows = math.ceil(panels / max(1, per_row))
    return rows, math.ceil(panels / rows)


def readable(text: str, space: str = "\u2581") -> str:
    """A token as the label of a row or column: with a mark for a space, and "\\n" for a line break."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text).replace(" ", space)


def shorten(name: str, longest: int = 12) -> str:
    """A name of at most `longest` letters."""
    return name if len(name) <= longest else f"{name[: longest - 1]}…"


def text_width(text: str, size: float = 8) -> float:
    """The width in inches of a line of text, of `size` points."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import text_to_path

    return text_to_path.get_text_width_height_descent(text, FontProperties(size=size), ismath=False)[0] / 72


def wrap(title: str, width: float) -> str:
    """A figure's title in lines that fit into `width` inches."""
    return textwrap.fill(title, int(width / 0.09))


def moving_average(values: Any, window: int) -> np.ndarray:
    """The mean of each `window` consecutive values (n,) -> (n - window + 1,)."""
    return np.convolve(values, np.ones(window) / window, mode="valid")

"""All figures, and the one style they share. The only file that imports matplotlib, and only when a figure is drawn.

Every function writes a PNG to `path`. The same numbers give the same bytes.
"""

import math
import sys
from collections.abc import Mapping, Sequence
from os import PathLike
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from minitransformer.files import atomic_write

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Okabe and Ito's palette, which colour-blind readers can tell apart
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
IN_NOTEBOOK = "ipykernel" in sys.modules


def pyplot() -> ModuleType:
    """Return matplotlib.pyplot in the project's style. Outside notebooks it draws to files only, on any machine."""
    import matplotlib

    if not IN_NOTEBOOK:
        matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    plt.style.use({**STYLE, "axes.prop_cycle": plt.cycler(color=COLORS)})
    return plt


def save_figure(figure: "Figure", path: str | PathLike[str]) -> None:
    """Write `figure` to `path` as a PNG without a date in it, and close it, except in a notebook, which shows it."""
    with atomic_write(path) as partial:
        figure.savefig(partial, format="png", metadata={"Software": None}, bbox_inches="tight")
    if not IN_NOTEBOOK:
        pyplot().close(figure)


def plot_training(history: Any, path: str | PathLike[str], title: str, floor: float | None = None) -> None:
    """Draw loss (nats per token) and learning rate over the steps.

    `history` has the lists `losses` and `learning_rates`, one number a step. `floor` is the lowest loss that label
    smoothing allows.
    """
    figure, (top, bottom) = pyplot().subplots(2, 1, figsize=(6.4, 4.6), sharex=True, height_ratios=(3, 1))
    steps = np.arange(1, len(history.losses) + 1)
    window = _smoothing_window(len(steps))
    top.plot(steps, history.losses, color=BLUE, alpha=0.3, linewidth=0.7, label="each step")
    top.plot(steps[window - 1 :], _moving_average(history.losses, window), color=BLUE, label=f"mean of {window} steps")
    if floor:
        top.axhline(floor, color=ORANGE, linestyle="--", linewidth=1, label=f"floor of label smoothing, {floor:.3f}")
    top.set(ylabel="loss (nats per token)", title=title, ylim=(0, None))
    top.legend()
    bottom.plot(steps, history.learning_rates, color=GREY)
    bottom.set(ylabel="learning rate", xlabel="step", ylim=(0, None))
    save_figure(figure, path)


def plot_text_training(
    history: Any, steps: Sequence[int], bits: Sequence[float], path: str | PathLike[str], title: str, unit: str
) -> None:
    """Draw the training loss, in bits (`history.losses` is in nats), and the held-out loss `bits` at `steps`."""
    figure, axis = pyplot().subplots()
    losses = np.array(history.losses) / math.log(2)
    window = _smoothing_window(len(losses))
    smooth = _moving_average(losses, window)
    axis.plot(np.arange(window, len(losses) + 1), smooth, color=BLUE, label=f"training, mean of {window} steps")
    if steps:
        axis.plot(steps, bits, "o-", color=ORANGE, markersize=4, label="held-out text, 64 windows of it")
    axis.set(xlabel="step", ylabel=unit, title=title, ylim=(0, None))
    axis.legend()
    save_figure(figure, path)


def plot_attention(
    weights: np.ndarray, queries: Sequence[str], keys: Sequence[str], path: str | PathLike[str], title: str
) -> None:
    """Draw one panel per head: weights (H, T, S), the T query tokens down the side, the S key tokens along the top."""
    H, T, S = weights.shape
    figure, axes = pyplot().subplots(1, H, figsize=(2.6 * H, 1.1 + 1.9 * T / S), squeeze=False)
    for head, axis in enumerate(axes[0]):
        image = axis.imshow(weights[head], vmin=0.0, vmax=1.0, aspect="equal")
        axis.set_xticks(range(len(keys)), keys)
        axis.set_yticks(range(len(queries)), queries)
        axis.tick_params(length=0, labelsize=8, top=True, labeltop=True, bottom=False, labelbottom=False)
        axis.set_title(f"head {head + 1}")
        axis.spines[:].set_visible(False)
    axes[0, 0].set_ylabel("token being written")
    figure.supxlabel("source token attended to", fontsize=9)
    figure.colorbar(image, ax=axes[0], shrink=0.7, label="attention weight")
    figure.suptitle(title)
    save_figure(figure, path)


def plot_bench(rows: Sequence[Mapping[str, Any]], path: str | PathLike[str], threads: int) -> None:
    """Draw how many times as fast as PyTorch each row of the benchmark is, and its share of the matrix-product rate.

    Each row has "size", "dropout", "ratio" and "matmul_share".
    """
    figure, (left, right) = pyplot().subplots(1, 2, figsize=(8.2, 3.2))
    sizes = list(dict.fromkeys(row["size"] for row in rows))
    rates = list(dict.fromkeys(row["dropout"] for row in rows))
    for i, rate in enumerate(rates):
        chosen = {row["size"]: row for row in rows if row["dropout"] == rate}
        where = np.arange(len(sizes)) + (i - (len(rates) - 1) / 2) * 0.38
        for axis, key in ((left, "ratio"), (right, "matmul_share")):
            heights = [chosen[size][key] for size in sizes]
            color = (BLUE, ORANGE, GREY)[i % 3]
            bars = axis.bar(where, heights, 0.36, label=f"dropout {rate}", color=color)
            axis.bar_label(bars, fmt="%.2f", fontsize=8)
    left.axhline(1.0, color=GREY, linewidth=1, linestyle="--")
    left.set(title=f"Speed of a training step, PyTorch eager = 1 ({threads} threads)", ylabel="times as fast")
    right.set(title="Share of the matrix-product rate", ylabel="share", ylim=(0, 1.05))
    for axis in (left, right):
        axis.set_xticks(range(len(sizes)), sizes)
    left.set_ylim(0, 1.3 * left.get_ylim()[1])
    left.legend(ncols=2, loc="upper left")
    save_figure(figure, path)


def plot_scaling(rows: Sequence[Mapping[str, Any]], powers: Mapping[str, float], path: str | PathLike[str]) -> None:
    """Draw step time and peak memory over each size that grows, both axes logarithmic.

    Each row has "what", "value", "seconds" and "bytes". `powers` {what: n} gives the slope of the dashed line.
    """
    figure, axes = pyplot().subplots(2, len(powers), figsize=(2.7 * len(powers), 4.8), sharey="row")
    for column, (what, power) in enumerate(powers.items()):
        chosen = [row for row in rows if row["what"] == what]
        values = np.array([row["value"] for row in chosen])
        for axis, key, unit in ((axes[0, column], "seconds", 1e3), (axes[1, column], "bytes", 1e-6)):
            measured = unit * np.array([row[key] for row in chosen])
            axis.loglog(values, measured, "o-", color=BLUE, markersize=4)
            slope = measured[-1] * (values / values[-1]) ** float(power)
            seen = slope >= measured.min() / 2
            axis.loglog(values[seen], slope[seen], "--", color=ORANGE, linewidth=1, label=f"slope {power}")
            axis.legend(loc="upper left")
            axis.set_xticks(values, values)
            axis.minorticks_off()
        axes[1, column].set_xlabel(what)
    axes[0, 0].set_ylabel("training step (ms)")
    axes[1, 0].set_ylabel("peak memory (MB)")
    figure.suptitle("Cost as one size grows; dashed: the power of it that dominates for large sizes")
    save_figure(figure, path)


def plot_lengths(
    rows: Sequence[Mapping[str, Any]],
    tasks: Sequence[str],
    lengths: Sequence[int],
    longest_trained: int,
    path: str | PathLike[str],
) -> None:
    """Draw the share of exact answers over the source's length: one panel per task, one line per position encoding.

    Each row has "task", "positions" and "exact_match", one share for each of `lengths`.
    """
    figure, axes = pyplot().subplots(1, len(tasks), figsize=(4.1 * len(tasks), 3.4), sharey=True, squeeze=False)
    axes = axes[0]
    colors = (BLUE, ORANGE, GREEN, PINK, YELLOW, GREY)
    for axis, task in zip(axes, tasks, strict=True):
        for row, color, mark in zip([row for row in rows if row["task"] == task], colors, "osD^vx", strict=True):
            axis.plot(lengths, row["exact_match"], mark + "-", color=color, markersize=4, label=row["positions"])
        axis.axvline(longest_trained, color=GREY, linestyle="--", linewidth=1)
        label = f"letters in the source (trained on up to {longest_trained})"
        axis.set(title=task, xlabel=label, xscale="log", ylim=(-0.03, 1.03))
        ticks = [length for length in lengths if length % 4 == 0 or length < 12]  # not 13 beside 12
        axis.set_xticks(ticks, ticks)
        axis.minorticks_off()
    axes[0].set_ylabel("share of exact answers")
    axes[-1].legend(loc="upper right")
    figure.suptitle("Accuracy beyond the training lengths, for each choice of positions")
    save_figure(figure, path)


def plot_decoding(seconds: np.ndarray, recomputed: Mapping[int, float], path: str | PathLike[str], title: str) -> None:
    """Draw the time of each new token: `seconds` (T,) with a KV cache, and {length: seconds} without one."""
    figure, axis = pyplot().subplots()
    window = 16
    places = np.arange(window, len(seconds) + 1)
    smooth = _moving_average(1e3 * seconds, window)
    axis.plot(places, smooth, color=BLUE, label=f"with a KV cache, mean of {window} tokens")
    milliseconds = [1e3 * value for value in recomputed.values()]
    axis.plot(list(recomputed), milliseconds, "o-", color=ORANGE, label="recomputing the whole text")
    axis.set(xlabel="tokens read so far", ylabel="milliseconds for one more token", title=title, yscale="log")
    axis.legend()
    save_figure(figure, path)


def plot_curves(losses: np.ndarray, path: str | PathLike[str], title: str) -> None:
    """Draw two losses (2, steps) of the same training, ours and PyTorch's, and below them their difference."""
    figure, (top, bottom) = pyplot().subplots(2, 1, figsize=(6.4, 4.6), sharex=True, height_ratios=(2, 1))
    steps = np.arange(1, losses.shape[1] + 1)
    top.plot(steps, losses[1], color=ORANGE, linewidth=4, alpha=0.5, label="PyTorch")
    top.plot(steps, losses[0], color=BLUE, linewidth=1, label="this library")
    top.set(ylabel="loss (nats per token)", title=title)
    top.legend()
    bottom.semilogy(steps, np.maximum(np.abs(losses[0] - losses[1]), 1e-9), color=GREY, linewidth=0.8)
    bottom.set(ylabel="difference (nats)", xlabel="step")
    save_figure(figure, path)


def _smoothing_window(steps: int) -> int:
    """A fiftieth of the steps, at least 1."""
    return max(1, steps // 50)


def _moving_average(values: Any, window: int) -> np.ndarray:
    """The mean of each `window` consecutive values (n,) -> (n - window + 1,)."""
    return np.convolve(values, np.ones(window) / window, mode="valid")

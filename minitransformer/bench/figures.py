"""The figures of the benchmarks. Like those of `plotting`, they are PNGs, and the same numbers give the same bytes."""

from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Any

import numpy as np

from minitransformer.plotting import (
    BLUE,
    COLORS,
    GREY,
    ORANGE,
    count_steps,
    counted,
    mark_powers,
    moving_average,
    plot_line,
    pyplot,
    save_figure,
    wrap,
)


def plot_bench(rows: Sequence[Mapping[str, Any]], path: str | PathLike[str], threads: int) -> None:
    """Draw how many times as fast as PyTorch each row of the benchmark is, and its share of the matrix-product rate.

    Each row has "size", "dropout", "ratio" and "matmul_share".
    """
    figure, (left, right) = pyplot().subplots(1, 2, figsize=(8.6, 3.4))
    sizes = list(dict.fromkeys(row["size"] for row in rows))
    rates = list(dict.fromkeys(row["dropout"] for row in rows))
    width = 0.76 / len(rates)
    for i, rate in enumerate(rates):
        chosen = {row["size"]: row for row in rows if row["dropout"] == rate}
        where = np.arange(len(sizes)) + (i - (len(rates) - 1) / 2) * width
        for axis, key in ((left, "ratio"), (right, "matmul_share")):
            heights = [chosen[size][key] for size in sizes]
            bars = axis.bar(where, heights, 0.95 * width, label=f"dropout {rate}", color=COLORS[i % len(COLORS)])
            numbers = [f"{height:.2f}" if height < 10 else f"{height:.0f}" for height in heights]
            axis.bar_label(bars, numbers, fontsize=8, rotation=0 if len(rows) <= 8 else 90, padding=2)
    left.axhline(1.0, color=GREY, linewidth=1, linestyle="--", label="PyTorch eager")
    left.set(title=f"Speed of a training step ({counted(threads, 'thread')})", ylabel="times as fast as PyTorch eager")
    right.set(title="Share of the machine's matrix-product rate", ylabel="share that the step reaches")
    for axis in (left, right):
        axis.set_xticks(range(len(sizes)), sizes)
        highest = max(patch.get_height() for patch in axis.patches)
        axis.set(xlabel="size of the model", xlim=(-0.7, len(sizes) - 0.3), ylim=(0, max(1.05, 1.25 * highest)))
    figure.legend(*left.get_legend_handles_labels(), ncols=min(len(rates) + 1, 6), loc="outside lower center")
    save_figure(figure, path)


def plot_scaling(rows: Sequence[Mapping[str, Any]], powers: Mapping[str, float], path: str | PathLike[str]) -> None:
    """Draw step time and peak memory over each size that grows, both axes logarithmic.

    Each row has "what", "value", "seconds" and "bytes". `powers` {what: n} gives the slope of the dashed line.
    """
    width = 2.7 * len(powers)
    figure, axes = pyplot().subplots(2, len(powers), figsize=(width, 4.9), sharex="col", sharey="row", squeeze=False)
    for column, (what, power) in enumerate(powers.items()):
        chosen = [row for row in rows if row["what"] == what]
        values = np.array([row["value"] for row in chosen])
        for axis, key, unit in ((axes[0, column], "seconds", 1e3), (axes[1, column], "bytes", 1e-6)):
            measured = unit * np.array([row[key] for row in chosen])
            axis.loglog(values, measured, "o-", color=BLUE, markersize=4, label="measured")
            lowest = measured.min() / 2  # where the dashed line ends, unless the values end first
            ends = np.array([max(values[0], values[-1] * (lowest / measured[-1]) ** (1 / power)), values[-1]])
            slope = measured[-1] * (ends / values[-1]) ** float(power)
            axis.loglog(ends, slope, "--", color=ORANGE, linewidth=1, label=f"slope {power}")
            axis.legend()
            axis.minorticks_off()
            axis.set_xticks(values, values)
            mark_powers(axis)
        axes[1, column].set_xlabel(what)
    axes[0, 0].set_ylabel("training step (ms)")
    axes[1, 0].set_ylabel("peak memory (MB)")
    title = "Cost of a training step as one size grows, and the power of the size that dominates when it is large"
    figure.suptitle(wrap(title, width))
    save_figure(figure, path)


def plot_attention(rows: Sequence[Mapping[str, Any]], path: str | PathLike[str], threads: int) -> None:
    """Draw time and peak memory of each kind of attention over the length of the text, all axes logarithmic.

    Each row has "kind", "length", "seconds" and "bytes".
    """
    figure, axes = pyplot().subplots(1, 2, figsize=(8.6, 4.2))
    lengths = sorted({row["length"] for row in rows})
    for i, kind in enumerate(dict.fromkeys(row["kind"] for row in rows)):
        chosen = [row for row in rows if row["kind"] == kind]
        style = "s--" if kind.startswith("PyTorch") else "o-"
        for axis, key, unit in ((axes[0], "seconds", 1e3), (axes[1], "bytes", 1e-6)):
            values = [unit * row[key] for row in chosen]
            axis.loglog([row["length"] for row in chosen], values, style, color=COLORS[i], markersize=4, label=kind)
    for axis, name in (
        (axes[0], f"forward and backward, {counted(threads, 'thread')} (ms)"),
        (axes[1], "peak memory (MB)"),
    ):
        axis.minorticks_off()
        axis.set_xticks(lengths, lengths)
        mark_powers(axis)
        axis.set(xlabel="length of the text (tokens)", ylabel=name)
    figure.suptitle("Cost of causal attention as the text grows")
    figure.legend(*axes[0].get_legend_handles_labels(), ncols=4, loc="outside lower center")
    save_figure(figure, path)


def plot_lengths(
    rows: Sequence[Mapping[str, Any]],
    tasks: Sequence[str],
    lengths: Sequence[int],
    longest_trained: int,
    path: str | PathLike[str],
) -> None:
    """Draw the percentages of exact answers as a table: one panel per task, one row per positional encoding.

    Each row has "task", "positions" and "exact_match", one share for each of `lengths`. Lines instead of a table would
    hide each other, because most shares are 1 or 0.
    """
    width = 4.4 * len(tasks) + 0.8
    figure, axes = pyplot().subplots(1, len(tasks), figsize=(width, 3.1), sharey=True, squeeze=False)
    within = sum(length <= longest_trained for length in lengths)
    for axis, task in zip(axes[0], tasks, strict=True):
        chosen = [row for row in rows if row["task"] == task]
        shares = np.array([row["exact_match"] for row in chosen])
        image = axis.imshow(100 * shares, vmin=0, vmax=100, aspect="auto")
        for (i, j), share in np.ndenumerate(shares):
            color = "black" if share > 0.6 else "white"
            axis.text(j, i, f"{100 * share:.3g}", ha="center", va="center", fontsize=8, color=color)
        axis.axvline(within - 0.5, color=ORANGE, linewidth=2)
        axis.set_xticks(range(len(lengths)), lengths)
        axis.set_yticks(range(len(chosen)), [row["positions"] for row in chosen])
        axis.tick_params(length=0)
        axis.spines[:].set_visible(False)
        axis.set(title=task, xlabel=f"letters in the source (left of the line: trained, up to {longest_trained})")
    axes[0, 0].set_ylabel("positions")
    figure.colorbar(image, ax=axes, label="exact answers (%)", shrink=0.9)
    figure.suptitle(wrap(f"Exact answers to sources of up to {max(lengths)} letters, in %", width))
    save_figure(figure, path)


def plot_decoding(seconds: np.ndarray, recomputed: Mapping[int, float], path: str | PathLike[str], title: str) -> None:
    """Draw the time of each new token: `seconds` (T,) with a KV cache, and {length: seconds} without one."""
    figure, axis = pyplot().subplots()
    window = min(16, len(seconds))
    smooth = moving_average(1e3 * seconds, window)
    label = f"with a KV cache, mean of the last {counted(window, 'token')}"
    plot_line(axis, np.arange(window, len(seconds) + 1), smooth, color=BLUE, label=label)
    milliseconds = [1e3 * value for value in recomputed.values()]
    axis.plot(list(recomputed), milliseconds, "o-", color=ORANGE, label="recomputing the whole text")
    axis.set(xlabel="tokens read so far", ylabel="time for one more token (ms)", title=title, yscale="log")
    axis.locator_params(axis="x", integer=True)
    mark_powers(axis)
    axis.legend()
    save_figure(figure, path)


def plot_curves(losses: np.ndarray, path: str | PathLike[str], title: str) -> None:
    """Draw two losses (2, steps) of the same training, ours and PyTorch's, and below them their difference."""
    figure, (top, bottom) = pyplot().subplots(2, 1, figsize=(6.4, 4.6), sharex=True, height_ratios=(2, 1))
    steps = np.arange(1, losses.shape[1] + 1)
    plot_line(top, steps, losses[1], color=ORANGE, linewidth=4, alpha=0.5, label="PyTorch")
    plot_line(top, steps, losses[0], color=BLUE, linewidth=1, label="this library")
    top.set(ylabel="loss (nats per token)", title=title)
    top.legend()
    plot_line(bottom, steps, losses[0] - losses[1], color=GREY, linewidth=0.8)
    bottom.set(ylabel="ours − PyTorch's\n(nats per token)")
    count_steps(bottom)
    save_figure(figure, path)

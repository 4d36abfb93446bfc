"""The figures of the comparisons. Like those of `plotting`, they are PNGs, and the same numbers give the same bytes."""

from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Any

from minitransformer.plotting import COLORS, GREY, count_steps, mark_powers, plot_line, pyplot, save_figure


def plot_table1(
    rows: Sequence[Mapping[str, Any]], paths: Sequence[Mapping[str, Any]], d: int, path: str | PathLike[str]
) -> None:
    """Draw the multiply-adds, the chains and the times over n, and the layers that connect two positions."""
    figure, axes = pyplot().subplots(2, 2, figsize=(9.0, 6.4))
    panels = {
        "multiply_adds": ("Multiply-adds of a layer, with projections", "millions, forward", 1e-6),
        "operations_in_chain": ("Operations that must wait for each other", "longest chain, forward and backward", 1),
        "milliseconds": ("Time of forward and backward, one core", "ms for a batch of 2,048 tokens", 1),
    }
    lengths = list(dict.fromkeys(row["n"] for row in rows))
    for axis, (key, (title, label, unit)) in zip((axes[0, 0], axes[0, 1], axes[1, 0]), panels.items(), strict=True):
        for color, kind in zip(COLORS, dict.fromkeys(row["kind"] for row in rows), strict=False):
            values = [unit * row[key] for row in rows if row["kind"] == kind]
            axis.loglog(lengths, values, "o-", color=color, markersize=4, label=kind)
        axis.set_xticks(lengths, lengths)
        axis.minorticks_off()
        mark_powers(axis)
        axis.set(title=title, xlabel="length of the sequence, n", ylabel=label)
    for axis, n in ((axes[0, 0], 2 * d), (axes[1, 0], d)):
        axis.axvline(n, color=GREY, linewidth=1, linestyle="--")
        axis.annotate(
            f"n = {'2d' if n > d else 'd'}",
            (0.97 * n, 0.02),
            xycoords=("data", "axes fraction"),
            color=GREY,
            ha="right",
        )
    bars = axes[1, 1].barh([row["kind"] for row in paths], [row["layers"] for row in paths], color=COLORS[0])
    axes[1, 1].bar_label(bars, [str(row["layers"]) for row in paths], padding=3)
    axes[1, 1].invert_yaxis()
    axes[1, 1].margins(x=0.12)
    axes[1, 1].set(
        title=f"Layers until two tokens {paths[0]['distance']} apart are connected", xlabel="layers in the stack"
    )
    figure.legend(*axes[0, 0].get_legend_handles_labels(), ncols=4, loc="outside lower center")
    save_figure(figure, path)


def plot_reach(distances: Sequence[int], reaches: Mapping[str, Sequence[float]], path: str | PathLike[str]) -> None:
    """Draw how much of the gradient arrives at the first token, over its distance from the loss."""
    figure, axis = pyplot().subplots(figsize=(8.2, 4.6))
    for color, (name, values) in zip(COLORS, reaches.items(), strict=False):
        axis.loglog(distances, values, "o-", color=color, markersize=4, label=name)
    axis.loglog(distances, [1 / (n + 1) for n in distances], "--", color=GREY, linewidth=1, label="1 / n")
    axis.set(
        title="How far a gradient reaches, before training",
        xlabel="distance between the token and the loss",
        ylabel="norm of dLoss/dx_1, divided by dLoss/dx_n at n = 1",
        ylim=(1e-16, 1e3),
    )
    axis.axhline(2.0**-24, color=GREY, linewidth=1, linestyle=":", label="rounding error of float32")
    figure.legend(*axis.get_legend_handles_labels(), ncols=4, loc="outside lower center")
    save_figure(figure, path)


def plot_one_vector(
    rows: Sequence[Mapping[str, Any]], lengths: Sequence[int], longest: int, path: str | PathLike[str]
) -> None:
    """Draw the exact match of every model over the length of the source, one panel for each task."""
    tasks = list(dict.fromkeys(row["task"] for row in rows))
    figure, axes = pyplot().subplots(1, len(tasks), figsize=(1.2 + 4.2 * len(tasks), 3.6), sharey=True, squeeze=False)
    for axis, task in zip(axes[0], tasks, strict=True):
        for color, row in zip(COLORS, (row for row in rows if row["task"] == task), strict=False):
            axis.plot(lengths, row["exact_match"], "o-", color=color, markersize=4, label=row["model"])
        axis.axvline(longest, color=GREY, linewidth=1, linestyle="--")
        axis.annotate("longest in training", (longest, 1.03), color=GREY, fontsize=8, ha="right")
        axis.set_xticks(lengths)
        axis.set(title=f"{task}\n", xlabel="letters of the source", ylim=(-0.03, 1.08))
    axes[0, 0].set_ylabel("exact match, held out")
    handles = axes[0, 0].get_legend_handles_labels()
    figure.legend(*handles, ncols=4, loc="outside lower center")
    save_figure(figure, path)


def plot_alignments(rows: Sequence[Mapping[str, Any]], path: str | PathLike[str]) -> None:
    """Draw the attention weights of one answer of each task: the source along the top, the answer down the side."""
    figure, axes = pyplot().subplots(1, len(rows), figsize=(3.6 * len(rows) + 0.8, 3.7), squeeze=False)
    for axis, row in zip(axes[0], rows, strict=True):
        example = row["example"]
        image = axis.imshow(example["weights"], vmin=0.0, vmax=1.0, aspect="auto")
        axis.set_xticks(range(len(example["source"])), example["source"])
        axis.set_yticks(range(len(example["target"])), example["target"])
        axis.tick_params(length=0, top=True, labeltop=True, bottom=False, labelbottom=False)
        axis.spines[:].set_visible(False)
        axis.set(title=row["task"], xlabel="letter attended to", ylabel="letter to be written")
    figure.colorbar(image, ax=axes[0].tolist(), label="attention weight")
    save_figure(figure, path)


def plot_recall(rows: Sequence[Mapping[str, Any]], pairs: Sequence[int], path: str | PathLike[str]) -> None:
    """Draw the share of right answers of every model over the number of pairs."""
    figure, axis = pyplot().subplots()
    for color, row in zip(COLORS, rows, strict=False):
        axis.plot(pairs, row["exact_match"], "o-", color=color, markersize=4, label=row["model"])
    axis.axhline(0.1, color=GREY, linewidth=1, linestyle="--", label="a guess")
    axis.set_xticks(pairs)
    axis.set(
        title="Recall: the value of one of many keys, asked at the end",
        xlabel="key-value pairs in the source",
        ylabel="right answers, held out",
        ylim=(-0.03, 1.06),
    )
    axis.legend()
    save_figure(figure, path)


def plot_translation(rows: Sequence[Mapping[str, Any]], titles: Mapping[str, str], path: str | PathLike[str]) -> None:
    """Draw BLEU of every model over the length of the source, each group of sentences at the middle of its lengths."""
    figure, axis = pyplot().subplots()
    for color, row in zip(COLORS, rows, strict=False):
        groups = row["by_length"]
        middles = [(group["shortest"] + group["longest"]) / 2 for group in groups]
        label = f"{titles[row['model']]}: {row['bleu']:.1f} in all"
        axis.plot(middles, [group["bleu"] for group in groups], "o-", color=color, markersize=4, label=label)
    axis.set(title="Translation, German to English", xlabel="words of the source", ylabel="BLEU", ylim=(0, None))
    figure.legend(*axis.get_legend_handles_labels(), ncols=3, loc="outside lower center")
    save_figure(figure, path)


def plot_sharpness(rows: Sequence[Mapping[str, Any]], path: str | PathLike[str]) -> None:
    """Draw the largest eigenvalue over the steps with the line 2 / lr of every learning rate, and the losses below."""
    figure, (top, bottom) = pyplot().subplots(2, 1, figsize=(6.4, 5.6), sharex=True, height_ratios=(3, 2))
    for color, row in zip(COLORS, rows, strict=False):
        lr = row["lr"]
        top.semilogy(row["steps"], row["sharpness"], color=color, linewidth=1, label=f"lr = {lr:g}")
        top.axhline(2 / lr, color=color, linewidth=1, linestyle="--")
        top.annotate(f"2 / {lr:g}", (1.01, 2 / lr), xycoords=("axes fraction", "data"), color=color, va="center")
        plot_line(bottom, range(len(row["losses"])), row["losses"], color=color, linewidth=1)
    top.set(title="Gradient descent at the edge of stability", ylabel="largest eigenvalue of the Hessian")
    mark_powers(top)
    top.legend(loc="lower right")
    bottom.set(ylabel="loss (nats per token)")
    count_steps(bottom)
    save_figure(figure, path)

"""Figures. The only file that imports matplotlib, and only when a figure is asked for."""

import math

import numpy as np

from minitransformer.files import written_whole

BLUE, ORANGE, GREY = "#0072B2", "#D55E00", "#777777"  # Okabe and Ito's palette: told apart by colour-blind readers


def _pyplot():
    """matplotlib.pyplot, drawing to files on any machine."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    plt.rcParams.update({"font.size": 9, "axes.spines.top": False, "axes.spines.right": False, "savefig.dpi": 110})
    return plt


def save_figure(figure, path):
    """Write `figure` to `path` as a PNG without a date in it, so that the same picture gives the same file."""
    with written_whole(path) as partial:
        figure.savefig(partial, format="png", metadata={"Software": None}, bbox_inches="tight")
    _pyplot().close(figure)


def plot_training(history, path, title, floor=None):
    """Loss (nats per token) and learning rate over the steps; `floor` is the least loss that smoothing allows."""
    plt = _pyplot()
    figure, (top, bottom) = plt.subplots(2, 1, figsize=(6.4, 4.6), sharex=True, height_ratios=(3, 1))
    steps = np.arange(1, len(history.losses) + 1)
    top.plot(steps, history.losses, color=BLUE, alpha=0.3, linewidth=0.7, label="each step")
    window = max(1, len(steps) // 50)
    smooth = np.convolve(history.losses, np.ones(window) / window, mode="valid")
    top.plot(steps[window - 1 :], smooth, color=BLUE, label=f"mean of {window} steps")
    if floor:
        top.axhline(floor, color=ORANGE, linestyle="--", linewidth=1, label=f"floor of label smoothing, {floor:.3f}")
    top.set(ylabel="loss (nats per token)", title=title, ylim=(0, None))
    top.legend(frameon=False)
    bottom.plot(steps, history.learning_rates, color=GREY)
    bottom.set(ylabel="learning rate", xlabel="step", ylim=(0, None))
    save_figure(figure, path)


def plot_attention(weights, queries, keys, path, title):
    """One panel a head: weights (H, T, S), the tokens that ask down the side, the tokens attended to along the top."""
    plt = _pyplot()
    H, T, S = weights.shape
    figure, axes = plt.subplots(1, H, figsize=(2.6 * H, 1.1 + 1.9 * T / S), squeeze=False, layout="constrained")
    for head, axis in enumerate(axes[0]):
        image = axis.imshow(weights[head], cmap="viridis", vmin=0.0, vmax=1.0, aspect="equal")
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


def plot_bench(rows, path, threads):
    """How many times as fast as PyTorch each row of the benchmark is, and its share of the matrix-product rate."""
    plt = _pyplot()
    figure, (left, right) = plt.subplots(1, 2, figsize=(8.2, 3.2), layout="constrained")
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
    left.legend(frameon=False, ncols=2, loc="upper left")
    save_figure(figure, path)


def plot_scaling(rows, powers, path):
    """Step time and peak memory over what grows, both axes logarithmic, with a line of the slope `powers` {what: n}."""
    plt = _pyplot()
    figure, axes = plt.subplots(2, len(powers), figsize=(2.7 * len(powers), 4.8), layout="constrained", sharey="row")
    for column, (what, power) in enumerate(powers.items()):
        chosen = [row for row in rows if row["what"] == what]
        values = np.array([row["value"] for row in chosen])
        for axis, key, unit in ((axes[0, column], "seconds", 1e3), (axes[1, column], "bytes", 1e-6)):
            measured = unit * np.array([row[key] for row in chosen])
            axis.loglog(values, measured, "o-", color=BLUE, markersize=4)
            slope = measured[-1] * (values / values[-1]) ** float(power)
            seen = slope >= measured.min() / 2
            axis.loglog(values[seen], slope[seen], "--", color=ORANGE, linewidth=1, label=f"slope {power}")
            axis.legend(frameon=False, loc="upper left")
            axis.set_xticks(values, values)
            axis.minorticks_off()
        axes[1, column].set_xlabel(what)
    axes[0, 0].set_ylabel("training step (ms)")
    axes[1, 0].set_ylabel("peak memory (MB)")
    figure.suptitle("Cost as one thing grows; dashed: the power of it that dominates in the end")
    save_figure(figure, path)


def plot_text_training(history, steps, bits, path, title, unit):
    """The loss of every step in bits, and that of the held-out text at `steps`."""
    plt = _pyplot()
    figure, axis = plt.subplots(figsize=(6.4, 3.6))
    losses = np.array(history.losses) / math.log(2)
    window = max(1, len(losses) // 50)
    smooth = np.convolve(losses, np.ones(window) / window, mode="valid")
    axis.plot(np.arange(window, len(losses) + 1), smooth, color=BLUE, label=f"training, mean of {window} steps")
    if steps:
        axis.plot(steps, bits, "o-", color=ORANGE, markersize=4, label="held-out text, 64 windows of it")
    axis.set(xlabel="step", ylabel=unit, title=title, ylim=(0, None))
    axis.legend(frameon=False)
    save_figure(figure, path)


def plot_lengths(rows, tasks, lengths, path):
    """One panel a task: the share of exact answers over the length of the source, a line for each position choice."""
    plt = _pyplot()
    size = (4.1 * len(tasks), 3.4)
    figure, axes = plt.subplots(1, len(tasks), figsize=size, sharey=True, squeeze=False, layout="constrained")
    axes = axes[0]
    colors = (BLUE, ORANGE, "#009E73", "#CC79A7", "#E69F00", GREY)  # Okabe and Ito's palette
    for axis, task in zip(axes, tasks, strict=True):
        for row, color, mark in zip([row for row in rows if row["task"] == task], colors, "osD^vx", strict=True):
            axis.plot(lengths, row["exact_match"], mark + "-", color=color, markersize=4, label=row["positions"])
        axis.axvline(12, color=GREY, linestyle="--", linewidth=1)
        axis.set(title=task, xlabel="letters in the source (learnt: up to 12)", xscale="log", ylim=(-0.03, 1.03))
        marks = [length for length in lengths if length % 4 == 0 or length < 12]  # not 13 beside 12
        axis.set_xticks(marks, marks)
        axis.minorticks_off()
    axes[0].set_ylabel("share of exact answers")
    axes[-1].legend(frameon=False, loc="upper right")
    figure.suptitle("How far each choice of positions carries beyond the lengths it was learnt on")
    save_figure(figure, path)


def plot_decoding(seconds, again, path, title):
    """Milliseconds of each token with the kv (`seconds` of each), and of reading all again at some lengths."""
    plt = _pyplot()
    figure, axis = plt.subplots(figsize=(6.4, 3.6))
    places = np.arange(1, len(seconds) + 1)
    window = 16
    smooth = np.convolve(1e3 * seconds, np.ones(window) / window, mode="valid")
    axis.plot(places[window - 1 :], smooth, color=BLUE, label=f"with the kv, mean of {window} tokens")
    axis.plot(list(again), [1e3 * value for value in again.values()], "o-", color=ORANGE, label="reading all again")
    axis.set(xlabel="tokens read so far", ylabel="milliseconds for one more", title=title, yscale="log")
    axis.legend(frameon=False)
    save_figure(figure, path)


def plot_curves(losses, path, title):
    """Two losses (2, steps) of the same training, ours and PyTorch's, above how far they are apart."""
    plt = _pyplot()
    figure, (top, bottom) = plt.subplots(2, 1, figsize=(6.4, 4.6), sharex=True, height_ratios=(2, 1))
    steps = np.arange(1, losses.shape[1] + 1)
    top.plot(steps, losses[1], color=ORANGE, linewidth=4, alpha=0.5, label="PyTorch")
    top.plot(steps, losses[0], color=BLUE, linewidth=1, label="this library")
    top.set(ylabel="loss (nats per token)", title=title)
    top.legend(frameon=False)
    bottom.semilogy(steps, np.maximum(np.abs(losses[0] - losses[1]), 1e-9), color=GREY, linewidth=0.8)
    bottom.set(ylabel="apart (nats)", xlabel="step")
    save_figure(figure, path)

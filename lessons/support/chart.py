"""Pictures of lesson 14, what a row sees and where two models look, of 15, the findings, of 16, two curves, and of 24.

lesson.save(shift_table(TARGET_IN, TARGET_OUT, p_right), "shift")
lesson.save(copy_and_reverse("equation", maps, lengths, curves))
right, half_right = descend([2, 20]), descend([2, 0])
lesson.save(valley(right, half_right), "descent")
lesson.save(findings_chart(table, found, solves, columns))
lesson.save(trail({2: gradient_errors, 4: more_gradient_errors}), "trail")
lesson.save(averages_and_beams(when, last, averaged, lengths, right))
lesson.save(two_valleys(rate=1.5), "valley")
lesson.save(edge_of_stability(one_step, (slow, quick), every=25))
lesson.save(switched({"Halved": (quick, halved, 200), "Doubled": (slow, doubled, 600)}, every=25), "switch")
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from support.pictures import canvas, mix

import numpy as np

from minitransformer.plotting import BLUE, GREEN, GREY, ORANGE, pyplot

plt = pyplot()

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

DECODER, ENCODER = "decoder.layers.0", "encoder.layers.0"
PLACES = {  # in the order in which the gradient reaches them: what their tensors' names begin with
    "decoder\nnorm 3": f"{DECODER}.feed_forward.norm.",
    "decoder\nffn": f"{DECODER}.feed_forward.sublayer.",
    "decoder\nnorm 2": f"{DECODER}.cross_attention.norm.",
    "decoder\ncross": f"{DECODER}.cross_attention.sublayer.",
    "decoder\nnorm 1": f"{DECODER}.self_attention.norm.",
    "decoder\nself": f"{DECODER}.self_attention.sublayer.",
    "encoder\nnorm 2": f"{ENCODER}.feed_forward.norm.",
    "encoder\nffn": f"{ENCODER}.feed_forward.sublayer.",
    "encoder\nnorm 1": f"{ENCODER}.self_attention.norm.",
    "encoder\nself": f"{ENCODER}.self_attention.sublayer.",
    "E": "source_embedding.",
}


def shift_table(target_in: Sequence[str], target_out: Sequence[str], p_right: Sequence[float]) -> "Figure":
    """What each row of the decoder sees and must write, and the probability that it gives to the right token."""
    T, blue = len(target_in), mix(BLUE, 0.35)
    rows: list[Any] = []
    colors: list[Any] = []
    box: Any = (0.08, 0.05, 0.9, 0.9)
    for t in range(T):
        rows.append([*target_in[: t + 1], *["hidden"] * (T - 1 - t), target_out[t], f"{p_right[t]:.3f}"])
        colors.append([blue] * (t + 1) + ["white"] * (T - 1 - t) + [blue, "white"])
    names = ["sees token 0", *(f"token {t}" for t in range(1, T)), "must write", "probability"]
    figure, axes = canvas(7.2, 2.0)
    labels = [f"row {t}" for t in range(T)]
    axes.table(rows, colors, "center", rowLabels=labels, colLabels=names, bbox=box)
    return figure


def copy_and_reverse(
    word: str, maps: Mapping[str, np.ndarray], lengths: Sequence[int], curves: Mapping[str, Sequence[float]]
) -> "Figure":
    """Attention (T, S) of both models on one word, and the share of words that are right at each length."""
    figure, axes = plt.subplot_mosaic(
        [["copy", "reverse"], ["curve", "curve"]], figsize=(6.4, 5.6), height_ratios=(1.4, 1)
    )
    places = range(len(word) + 1)
    for name, answer, color in (("copy", word, BLUE), ("reverse", word[::-1], GREEN)):
        axes[name].imshow(maps[name], cmap="Blues", vmin=0, vmax=1)
        axes[name].set_xticks(places, [*word, "eos"])
        axes[name].set_yticks(places, [*answer, "eos"])
        axes[name].set(title=name, xlabel="token of the source", ylabel="token to be written")
        axes["curve"].plot(lengths, curves[name], "o-", color=color, label=name)
    axes["curve"].axvspan(2.6, 8.5, color=GREY, alpha=0.15, linewidth=0, label="lengths in training")
    axes["curve"].set(xlabel="letters in the word", ylabel="words right (%)", xticks=lengths, xlim=(2.6, 14.4))
    axes["curve"].legend(loc="upper right")
    return figure


def descend(factors: Sequence[float], lr: float = 0.04, steps: int = 100) -> list[np.ndarray]:
    """The points of a descent from (1, 0.1), if the gradient at a point is the point times `factors`."""
    points = [np.array([1, 0.1])]
    for _ in range(steps):
        points.append(points[-1] - lr * np.array(factors) * points[-1])
    return points


def valley(right: Sequence[np.ndarray], half_right: Sequence[np.ndarray]) -> "Figure":
    """Two lists of points (2,) on the levels of the loss first² + 10 second²."""
    figure, axis = plt.subplots(figsize=(7.2, 2.4))
    first, second = np.meshgrid(np.linspace(-0.1, 1.1, 100), np.linspace(-0.04, 0.13, 100))
    levels = axis.contour(
        first, second, first**2 + 10 * second**2, np.arange(1, 12) / 10, colors=[GREY], linewidths=0.6
    )
    axis.clabel(levels, levels.levels[::3], fontsize=7)
    axis.plot(*np.transpose(right), "o-", color=BLUE, markersize=3, label="all of the gradient")
    axis.plot(*np.transpose(half_right), "o-", color=ORANGE, markersize=3, label="half of it forgotten")
    axis.set(xlabel="first parameter", ylabel="second parameter")
    figure.legend(loc="outside right center")
    return figure


def findings_chart(table: Any, found: np.ndarray, solves: np.ndarray, columns: Sequence[str]) -> "Figure":
    """What the tools say: table (11, 7), of the healthy library and ten patients.

    found (11, 6): whether it is a finding, in orange. solves (11,): whether the task is solved, in blue.
    """
    forms = ("{:.2f}", "{:.3f}", "{:.0e}", "{:.0e}", "{:.0e}", "{:.3f}", "{:.0%}")
    texts = [[form.format(value) for form, value in zip(forms, row, strict=True)] for row in table]
    orange, blue = np.zeros((2, 11, 7), bool)
    orange[:, :6], blue[:, 6] = found, solves
    figure, axis = plt.subplots(figsize=(7.2, 4.6))
    _chart(axis, texts, orange, blue, ["healthy", *range(1, 11)], columns)
    axis.set(xlabel="orange: a finding; blue: at least 90 % of the words exact", ylabel="patient")
    return figure


def trail(errors: Mapping[int, Mapping[str, float]]) -> "Figure":
    """How many gradients are wrong at each place: {patient: {tensor: error}}."""
    counts = [wrong_gradients(errors_of_patient) for errors_of_patient in errors.values()]
    texts = [[f"{wrong}/{all_there}" for wrong, all_there in places.values()] for places in counts]
    orange = np.array([[wrong > 0 for wrong, _ in places.values()] for places in counts])
    figure, axis = plt.subplots(figsize=(8, 2.3))
    _chart(axis, texts, orange, np.zeros_like(orange), list(errors), list(PLACES))
    axis.set(xlabel="wrong gradients, of all gradients there (the gradient runs from left to right)", ylabel="patient")
    return figure


def wrong_gradients(errors: Mapping[str, float]) -> dict[str, tuple[int, int]]:
    """{place: (wrong gradients, all gradients)} of a model, in the order in which the gradient reaches the places."""
    found = {place: [e > 1e-9 for name, e in errors.items() if name.startswith(PLACES[place])] for place in PLACES}
    return {place: (sum(wrong), len(wrong)) for place, wrong in found.items()}


def _chart(
    axes: "Axes", texts: Any, orange: np.ndarray, blue: np.ndarray, rows: Sequence[Any], columns: Sequence[str]
) -> None:
    """Draw the `texts`, rows of strings: white on orange or blue where these are True, else black on gray."""
    fills = np.where(orange, ORANGE, np.where(blue, BLUE, ""))
    for (i, j), text in np.ndenumerate(np.array(texts)):
        fill = str(fills[i, j])
        box = {"facecolor": fill or GREY, "alpha": 1.0 if fill else 0.15, "edgecolor": "white", "linewidth": 2}
        axes.add_patch(plt.Rectangle((j, i), 1, 1, **box))
        axes.text(j + 0.5, i + 0.5, text, ha="center", va="center", color="white" if fill else "black")
    axes.set(xlim=(0, len(columns)), ylim=(len(rows), 0))
    axes.set_xticks(np.arange(len(columns)) + 0.5, columns)
    axes.set_yticks(np.arange(len(rows)) + 0.5, rows)
    axes.tick_params(length=0, top=False, labeltop=True, labelbottom=False)
    axes.spines[:].set_visible(False)


def averages_and_beams(
    when: Sequence[int],
    last: Sequence[float],
    averaged: Sequence[float],
    lengths: Mapping[tuple[float, int], float],
    right: float,
) -> "Figure":
    """Words right with the last weights and with a mean, and the mean lengths {(alpha, beam): tokens} of answers."""
    figure, (left, panel) = plt.subplots(1, 2, figsize=(7.4, 3.3))
    left.plot(when, last, "o-", color=GREY, label="the last weights")
    left.plot(when, averaged, "o-", color=BLUE, label="mean of the last five")
    left.set(title="Averaging weights", xlabel="training step", ylabel="words right (%)", ylim=(-3, 103))
    left.legend(loc="upper left")
    beams = sorted({beam for _, beam in lengths})
    for alpha, color in ((0.6, BLUE), (0.0, GREEN)):
        curve = [lengths[alpha, beam] for beam in beams]
        panel.plot(range(len(beams)), curve, "o-", color=color, label=f"α = {alpha}")
    panel.axhline(right, color=GREY, linestyle="--", label="right answers")
    panel.set(title="Wider beams", xlabel="beam", ylabel="mean length of the answer (tokens)")
    panel.set_xticks(range(len(beams)), [str(beam) for beam in beams])
    panel.legend()
    return figure


def two_valleys(rate: float) -> "Figure":
    """Lesson 24: ten steps of descent in a steep valley and in one a tenth as steep, with the rate in units of 1/λ."""
    figure, panels = plt.subplots(1, 2, figsize=(7.6, 2.6), sharey=True)
    across = np.linspace(-1.3, 1.3, 105)
    for panel, curvature, title in zip(panels, (1.0, 0.1), ("steep: λ", "flat: λ/10"), strict=True):
        places = (1 - rate * curvature) ** np.arange(11)
        panel.plot(across, across**2 * curvature / 2, color=GREY, linewidth=1)
        panel.plot(places, places**2 * curvature / 2, "o-", color=BLUE, linewidth=0.8, markersize=4)
        panel.set(title=title, xlabel="θ", ylim=(-0.05, 0.7))
    panels[0].set_ylabel("loss")
    return figure


def edge_of_stability(one_step: Mapping[str, Any], runs: Sequence[Any], every: int) -> "Figure":
    """Lesson 24: the loss after one step of each rate; the sharpness of the runs, every so many steps; their losses."""
    figure, (left, middle, right) = plt.subplots(1, 3, figsize=(8.1, 3.1))
    left.plot(1000 * one_step["rate"], one_step["loss"], color=BLUE)
    left.plot(1000 * one_step["rate"], one_step["parabola"], "--", color=ORANGE)
    left.axhline(one_step["before"], color=GREY, linewidth=0.8)
    left.axvline(1000 * one_step["limit"], color=GREEN, linewidth=1)
    for text, x, y, color in (
        ("the loss", 13.1, 0.15, BLUE),
        ("from g\nand J", 7.0, 0.26, ORANGE),
        ("2/λ", 4.1, 0.36, GREEN),
    ):
        left.text(x, y, text, color=color)
    left.set(title="One step of our model", xlabel="learning rate / 0.001", ylabel="loss after the step", ylim=(0, 0.4))
    for run, color in zip(runs, (BLUE, ORANGE), strict=True):
        steps = every * np.arange(len(run.sharp))
        middle.plot(steps, run.sharp, color=color, linewidth=1.2, label=f"lr = {run.lr}")
        middle.axhline(2 / run.lr, color=color, linewidth=1, linestyle="--")
        right.plot(run.losses, color=color, linewidth=1)
    middle.set(title="Sharpness, and 2/lr", xlabel="step", ylabel="largest eigenvalue", ylim=(0, 80))
    middle.legend(fontsize=8, loc="upper right")
    right.set(title="The loss falls anyway", xlabel="step", ylabel="loss (nats a token)", ylim=(0.5, 3.3))
    return figure


def switched(changes: Mapping[str, tuple[Any, Any, int]], every: int) -> "Figure":
    """Lesson 24: the sharpness of runs whose rate is changed at a step: {title: (before, after it, step)}."""
    figure, panels = plt.subplots(1, 2, figsize=(7.6, 2.9), sharey=True)
    for panel, (title, (before, behind, at)) in zip(panels, changes.items(), strict=True):
        for run, first, count, color in ((before, 0, at // every + 1, BLUE), (behind, at, len(behind.sharp), ORANGE)):
            sharp = run.sharp[:count]
            steps = first + every * np.arange(len(sharp))
            panel.plot(steps, sharp, color=color, linewidth=1.2, label=f"lr = {run.lr}")
            panel.hlines(2 / run.lr, steps[0], steps[-1], color=color, linewidth=1, linestyle="--")
        panel.set(title=title, xlabel="step", ylim=(0, 80))
        panel.legend(fontsize=8, loc="lower right")
    panels[0].set_ylabel("largest eigenvalue")
    return figure

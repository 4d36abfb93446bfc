"""The figure of `minitransformer bench --communication`."""

from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Any

import numpy as np

from minitransformer.plotting import COLORS, GREY, mark_powers, pyplot, save_figure


def plot_communication(
    sums: Sequence[Mapping[str, Any]],
    fits: Sequence[Mapping[str, Any]],
    simulated: Sequence[Mapping[str, Any]],
    path: str | PathLike[str],
) -> None:
    """Draw the measured sums with the models fitted to them, and the simulated speed-up on many machines.

    `sums` have "processes", "parameters" and "seconds"; `fits` "processes", "latency" and "bandwidth";
    `simulated` are the rows of `communication.simulate`.
    """
    figure, (left, right) = pyplot().subplots(1, 2, figsize=(9.4, 4.2))
    _draw_sums(left, sums, fits)
    _draw_simulated(right, simulated)
    figure.legend(*right.get_legend_handles_labels(), ncols=4, loc="outside lower center", fontsize=8)
    save_figure(figure, path)


def _draw_sums(axis: Any, sums: Sequence[Mapping[str, Any]], fits: Sequence[Mapping[str, Any]]) -> None:
    """Measured seconds as dots, and the fitted models as lines."""
    for i, model in enumerate(fits):
        rows = [row for row in sums if row["processes"] == model["processes"]]
        counts = np.array([row["parameters"] for row in rows])
        axis.scatter(counts, [1e3 * row["seconds"] for row in rows], s=16, color=COLORS[i])
        ends = np.geomspace(counts.min(), counts.max(), 50)
        fitted = 1e3 * (model["latency"] + 4 * ends / model["bandwidth"])
        axis.loglog(ends, fitted, color=COLORS[i], linewidth=1, label=f"{model['processes']} processes")
    axis.set(
        title="Dots: measured sums on one machine; lines: fitted",
        xlabel="parameters (float32)",
        ylabel="ms",
    )
    axis.minorticks_off()
    mark_powers(axis)
    axis.legend(loc="upper left")


def _draw_simulated(axis: Any, simulated: Sequence[Mapping[str, Any]]) -> None:
    """The speed-up of each model, machine and network."""
    cases = list(dict.fromkeys((row["model"], row["machine"]) for row in simulated))
    for i, (model, machine) in enumerate(cases):
        for network, style in zip(dict.fromkeys(row["network"] for row in simulated), ("--", "-"), strict=False):
            wanted = (model, machine, network)
            rows = [row for row in simulated if (row["model"], row["machine"], row["network"]) == wanted]
            machines, speedups = [row["machines"] for row in rows], [row["speedup"] for row in rows]
            label = f"{model}, {machine}, {network}"
            axis.loglog(machines, speedups, style, color=COLORS[i], linewidth=1.5, label=label)
    machines = sorted({row["machines"] for row in simulated})
    axis.loglog(machines, machines, ":", color=GREY, linewidth=1, label="no communication")
    axis.set(
        title="Simulated: data parallelism on many machines", xlabel="machines", ylabel="times as fast as one machine"
    )
    axis.minorticks_off()
    axis.set_xticks(machines, machines)
    mark_powers(axis)

"""What does the sum over processes cost, and what does that mean for many machines?

Measured: the seconds of `Communicator.add_up` between processes on this machine, for several numbers of parameters and
of processes. This model is fitted to them:

    sum(bytes) = latency + bytes / bandwidth

Simulated: a step on N machines, from a measured step of one process, with the latency and bandwidth of an assumed
network (NETWORKS) between them:

    step(N) = step(1) / N + 2 (N - 1) latency + 2 (N - 1) / N bytes / bandwidth

This is a sum in a ring (Patarasu and Yuan 2009): in N - 1 rounds each machine sends 1 / N of the vector, partly added
up, to the next one, and in N - 1 more rounds the sums go round. The work of a step is divided evenly, and the sum
starts when the gradient is complete.
"""

import itertools
import math
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from experiments.measuring.mpiexec import call_in_processes, find_mpiexec
from experiments.measuring.steps import SIZES, Size, numpy_step
from experiments.measuring.timing import seconds_of
from experiments.report import Figure, Options, Rows, Table, grouped, legend_below, listed, name_ticks, pivot
from minitransformer.inspection.activation_memory import count_parameters
from minitransformer.plotting import COLORS, GREY, mark_powers, pyplot
from minitransformer.system.devices import free_memory
from minitransformer.training.parallel.communicator import Communicator

PER_ROW = 10.0
SECONDS = {True: 60, False: 240}
THREADS = None
COUNTS = tuple(round(10 ** (exponent / 2)) for exponent in range(8, 17))  # parameters: 10^4 to 10^8
PROCESSES = (1, 2, 3, 4)
LEAST, MOST = 4, 200  # sums of one length
COPIES = 4  # of the vector that each process may need at once
PAPER_TOKENS = 50_000  # of source and target in a batch (paper section 5.1)
MODELS = {
    "tiny": SIZES["tiny"],
    "base": Size("base", 37_000, 512, 8, 2048, 6, batch=4, length=64),
    "big": Size("big", 37_000, 1024, 16, 4096, 6, batch=4, length=64),
}
PAPER_SECONDS = {"base": 0.4, "big": 1.0}  # of a step on 8 P100 GPUs (paper section 5.2)
MACHINES = (1, 2, 4, 8, 16, 32, 64, 128)
SHOWN = (8, 64)
CASE = ("model", "machine", "network")  # of a simulation


class Network(NamedTuple):
    """What connects machines; assumed, not measured."""

    name: str
    latency: float  # seconds of a message, whatever its length
    bandwidth: float  # bytes per second


NETWORKS = (Network("10 Gbit/s", 30e-6, 1.25e9), Network("100 Gbit/s", 5e-6, 12.5e9))


def rows(options: Options) -> Rows:
    """Measure the sums and the steps, fit, and simulate; the seconds of a row are those of one number of processes."""
    launcher = find_mpiexec("experiment communication")
    sums = [row for processes in PROCESSES for row in sums_of(launcher, processes, options.seconds)]
    fits = [fit([row for row in sums if row["processes"] == processes]) for processes in PROCESSES[1:]]
    models = ["tiny"] if options.quick else list(MODELS)
    steps = {name: measured_step(MODELS[name]) for name in models}
    return {
        "sums": sums,
        "fits": fits,
        "steps": [{"model": name, **step} for name, step in steps.items()],
        "simulated": [row for case in cases(steps) for row in simulate(*case)],
    }


def tables(rows: Rows) -> list[Table]:
    """The sums, the fits, the measured steps, and the simulated steps on the numbers of machines in SHOWN."""
    named = [
        {**row, "in": f"{row['processes']} processes", "parameters": f"{row['parameters']:,}"} for row in rows["sums"]
    ]
    titles = {"seconds": "a sum in free order (ms)", "seconds in order": "a sum in the order of the ranks (ms)"}
    fits = {
        "processes": ("processes",),
        "latency": (lambda row: f"{1e6 * row['latency']:.1f} µs",),
        "bandwidth": (lambda row: f"{row['bandwidth'] / 1e9:.2f} GB/s",),
        "off by a factor of, at most": ("largest factor", ".1f"),
    }
    forms = {"model": "", "parameters": ",", "tokens": ",", "seconds": ".3g"}
    columns = [name for machines in SHOWN for name in (f"{machines} machines (s)", "speed-up")]
    cells = []
    for case, found in grouped(rows["simulated"], *CASE).items():
        shown = [row for row in found if row["machines"] in SHOWN]
        both = ((f"{row['work']:.4g} + {row['sum']:.3g}", f"{row['speedup']:.1f}x") for row in shown)
        cells.append([*case, *itertools.chain.from_iterable(both)])
    title = "simulated: seconds of a step = work + sum, and how many times as fast as one machine"
    return [
        *(pivot(title, named, "parameters", "in", key, ".3f", 1e3) for key, title in titles.items()),
        listed("fitted", rows["fits"], fits),
        listed("a step, measured", rows["steps"], {key: (key, form) for key, form in forms.items()}),
        Table(title, [*CASE, *columns], cells),
    ]


def findings(rows: Rows) -> list[str]:
    """Where the sum begins to take longer than the work."""
    found = []
    for case, simulated in grouped(rows["simulated"], *CASE).items():
        if wanted := [row["machines"] for row in simulated if row["sum"] > row["work"]]:
            found.append(f"{', '.join(case)}: on {wanted[0]} machines the sum takes longer than the work.")
    return found


def draw(rows: Rows) -> Figure:
    """The measured sums with the models fitted to them, and the simulated speed-up on many machines."""
    figure, (left, right) = pyplot().subplots(1, 2, figsize=(9.4, 4.2))
    _draw_sums(left, rows["sums"], rows["fits"])
    _draw_simulated(right, rows["simulated"])
    legend_below(figure, right, fontsize=8)
    return figure


def _draw_sums(axis: Any, sums: Sequence[Mapping[str, Any]], fits: Sequence[Mapping[str, Any]]) -> None:
    """Measured seconds as dots, and the fitted models as lines."""
    for i, model in enumerate(fits):
        rows = [row for row in sums if row["processes"] == model["processes"]]
        counts = np.array([row["parameters"] for row in rows])
        axis.scatter(counts, [1e3 * row["seconds"] for row in rows], s=16, color=COLORS[i])
        ends = np.geomspace(counts.min(), counts.max(), 50)
        fitted = 1e3 * (model["latency"] + 4 * ends / model["bandwidth"])
        axis.loglog(ends, fitted, color=COLORS[i], linewidth=1, label=f"{model['processes']} processes")
    axis.set(title="Dots: measured sums on one machine; lines: fitted", xlabel="parameters (float32)", ylabel="ms")
    axis.minorticks_off()
    mark_powers(axis)
    axis.legend(loc="upper left")


def _draw_simulated(axis: Any, simulated: Sequence[Mapping[str, Any]]) -> None:
    """The speed-up of each model, machine and network."""
    for i, models in enumerate(grouped(simulated, *CASE[:2]).values()):
        for style, (case, rows) in zip(("--", "-"), grouped(models, *CASE).items(), strict=False):
            machines, speedups = ([row[key] for row in rows] for key in ("machines", "speedup"))
            axis.plot(machines, speedups, style, color=COLORS[i], linewidth=1.5, label=", ".join(case))
    machines = sorted({row["machines"] for row in simulated})
    axis.plot(machines, machines, ":", color=GREY, linewidth=1, label="no communication")
    axis.set(title="Simulated: data parallelism on many machines", xlabel="machines")
    axis.set_ylabel("times as fast as one machine")
    name_ticks(axis, machines)


def sums_of(launcher: str, processes: int, seconds: float) -> list[dict[str, Any]]:
    """What `measure_sums` finds with so many processes, which are started for it."""
    return call_in_processes(launcher, processes, __name__, f"measure_sums(connect(), {seconds!r})")


def measure_sums(communicator: Communicator, seconds: float, counts: Sequence[int] = COUNTS) -> list[dict[str, Any]]:
    """The seconds of a sum of float32 numbers, for each length, in free order and in that of the ranks.

    A sum lasts as long as the slowest process takes, after all have begun. The fastest of at least 4 sums counts,
    because other work on the machine only adds to the time. Lengths for which memory is short are left out.
    """
    rows, space = [], min(communicator.collect(free_memory() or 2**33)) / communicator.processes_here
    for count in counts:
        if 4 * count * COPIES > space:
            break
        array = np.zeros(count, np.float32)
        row: dict[str, Any] = {"processes": communicator.size, "parameters": count}
        for name, in_order in (("seconds", False), ("seconds in order", True)):
            times: list[float] = []
            # all have the same times, and so make the same number of sums
            while len(times) < LEAST or (len(times) < MOST and sum(times) < seconds / 2 / len(counts)):
                communicator.collect(None)  # all begin together
                seconds_here = seconds_of(partial(communicator.add_up, array, in_order))
                times.append(max(communicator.collect(seconds_here)))
            row[name] = min(times[1:])  # the first touches new memory
        rows.append(row)
    return rows


def fit(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The latency and bandwidth whose times differ from the measured ones by the smallest factors.

    That is, with the smallest squares of the differences of logarithms: a sum of 10 µs counts as much as one of 1 s.
    Found on a grid of both, which is then made finer around the best. "largest factor" is that of the worst row.
    """
    counts, times = (np.array([row[key] for row in rows], float) for key in ("parameters", "seconds"))
    best, width = np.array([math.log(1e-5), math.log(1e9)]), math.log(1e4)  # of the logarithms
    for _ in range(24):
        grid = np.linspace(-width, width, 41)
        latency, bandwidth = best[0] + grid[:, None, None], best[1] + grid[None, :, None]
        off = abs(np.log(np.exp(latency) + 4 * counts / np.exp(bandwidth)) - np.log(times))
        i, j = np.unravel_index((off**2).sum(axis=-1).argmin(), off.shape[:2])
        best, width = best + grid[[i, j]], width / 2
    found = {"latency": math.exp(best[0]), "bandwidth": math.exp(best[1]), "largest factor": math.exp(off[i, j].max())}
    return {"processes": rows[0]["processes"], **found}


def measured_step(size: Size) -> dict[str, Any]:
    """A training step of one process -> its parameters, tokens and seconds, the fastest as in `measure_sums`."""
    step = numpy_step(size, 0.1)
    times: list[float] = []
    while len(times) < LEAST or (len(times) < MOST and sum(times) < 10):
        times.append(seconds_of(step))
    parameters = count_parameters(size.config(0.1))
    return {"parameters": parameters, "tokens": size.tokens, "seconds": min(times[1:])}


def cases(steps: dict[str, dict[str, Any]]) -> list[tuple[str, str, int, float]]:
    """(model, machine, parameters, seconds of a step on one machine), for `simulate`.

    On the CPU, a step of base and big has the paper's batch: the measured time, scaled by the tokens. One GPU takes 8
    times as long as the paper's 8, which counts what these spent on their own sum as work.
    """
    found = []
    for name, step in steps.items():
        scale = PAPER_TOKENS / step["tokens"] if name in PAPER_SECONDS else 1.0
        found.append((name, "CPU", step["parameters"], scale * step["seconds"]))
    gpus = [(name, seconds) for name, seconds in PAPER_SECONDS.items() if name in steps]
    return found + [(name, "P100", steps[name]["parameters"], 8 * seconds) for name, seconds in gpus]


def ring_seconds(machines: int, bytes_: float, network: Network) -> float:
    """The time of a sum over machines in a ring."""
    rounds = 2 * (machines - 1)
    return rounds * (network.latency + bytes_ / machines / network.bandwidth)


def simulate(model: str, machine: str, parameters: int, seconds: float) -> list[dict[str, Any]]:
    """The step on each number of machines and each network; float32 gradients."""
    rows = []
    for network in NETWORKS:
        for machines in MACHINES:
            work, talk = seconds / machines, ring_seconds(machines, 4 * parameters, network)
            row = {"model": model, "machine": machine, "network": network.name, "machines": machines}
            rows.append({**row, "work": work, "sum": talk, "speedup": seconds / (work + talk)})
    return rows

"""`minitransformer bench --communication`: what the sum over processes costs, and what that means for other machines.

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

import json
import math
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from minitransformer.bench.communication_figure import plot_communication
from minitransformer.bench.mpiexec import call_in_processes, find_mpiexec
from minitransformer.bench.sizes import SIZES, Size
from minitransformer.bench.steps import numpy_step
from minitransformer.inspection.activation_memory import count_parameters
from minitransformer.system.devices import free_memory
from minitransformer.system.process import blas_threads
from minitransformer.training.parallel.communicator import Communicator
from minitransformer.training.parallel.connect import connect

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


class Network(NamedTuple):
    """What connects machines; assumed, not measured."""

    name: str
    latency: float  # seconds of a message, whatever its length
    bandwidth: float  # bytes per second


NETWORKS = (Network("10 Gbit/s", 30e-6, 1.25e9), Network("100 Gbit/s", 5e-6, 12.5e9))


def run(seconds: float, folder: Path) -> dict[str, Any]:
    """Measure, fit and simulate -> {"threads", "sums", "fits", "steps", "simulated"}.

    `seconds` is the time for the sums of one number of processes. Prints tables, and draws scaling.png into `folder`.
    Raises ValueError without mpi4py or mpiexec.
    """
    launcher = find_mpiexec("bench --communication")
    sums = [row for processes in PROCESSES for row in sums_of(launcher, processes, seconds)]
    fits = [fit([row for row in sums if row["processes"] == processes]) for processes in PROCESSES[1:]]
    print_sums(sums, fits)
    steps = {name: measured_step(size) for name, size in MODELS.items()}
    print(f"\n{'a step, measured':<17}" + "".join(f"{name:>12}" for name in steps))
    for what in ("parameters", "tokens", "seconds"):
        print(f"{what:<17}" + "".join(f"{step[what]:>12,.4g}" for step in steps.values()))
    rows = [row for case in cases(steps) for row in simulate(*case)]
    print_simulated(rows)
    figure = folder / "scaling.png"
    plot_communication(sums, fits, rows, figure)
    print(f"\nsaved {figure}")
    return {"threads": blas_threads(), "sums": sums, "fits": fits, "steps": steps, "simulated": rows}


def sums_of(launcher: str, processes: int, seconds: float) -> list[dict[str, Any]]:
    """What `measure_sums` finds with so many processes, which are started for it."""
    return json.loads(call_in_processes(launcher, processes, __name__, f"print_measured({seconds!r})"))


def print_measured(seconds: float, counts: Sequence[int] = COUNTS) -> None:
    """Print what `measure_sums` finds, as JSON, in the root. All processes call it."""
    rows = measure_sums(connect(), seconds, counts)
    if connect().is_root:
        print(json.dumps(rows))


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
                start = time.perf_counter()
                communicator.add_up(array, in_order)
                times.append(max(communicator.collect(time.perf_counter() - start)))
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
        start = time.perf_counter()
        step()
        times.append(time.perf_counter() - start)
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
    return [
        *found,
        *((name, "P100", steps[name]["parameters"], 8 * seconds) for name, seconds in PAPER_SECONDS.items()),
    ]


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


def print_sums(sums: Sequence[dict[str, Any]], fits: Sequence[dict[str, Any]]) -> None:
    """Two tables: the measured sums, and the models fitted to them."""
    sizes = sorted({row["processes"] for row in sums})
    print("a sum over processes on this machine, measured (ms, the fastest): free order, and in the order of the ranks")
    print(f"{'parameters':>12}" + "".join(f"{f'{size} processes':>20}" for size in sizes))
    for count in dict.fromkeys(row["parameters"] for row in sums):
        cells = {
            row["processes"]: f"{1e3 * row['seconds']:>10.3f}{1e3 * row['seconds in order']:>10.3f}"
            for row in sums
            if row["parameters"] == count
        }
        print(f"{count:>12,}" + "".join(cells.get(size, " " * 20) for size in sizes))
    print("\nfitted: latency + bytes / bandwidth, free order")
    for row in fits:
        cost = f"{1e6 * row['latency']:.1f} µs + bytes / {row['bandwidth'] / 1e9:.2f} GB/s"
        print(f"{row['processes']} processes: {cost}, off by a factor of {row['largest factor']:.1f} at most")


def print_simulated(rows: Sequence[dict[str, Any]]) -> None:
    """The table of the numbers of machines in SHOWN."""
    print("\nsimulated: seconds of a step = work + sum, and how many times as fast as one machine")
    print(f"{'model':<6}{'machine':<9}{'network':<12}" + "".join(f"{f'{n} machines':>32}" for n in SHOWN))
    cases: dict[tuple[str, str, str], str] = {}
    for row in rows:
        if row["machines"] in SHOWN:
            case = row["model"], row["machine"], row["network"]
            cell = f"{row['work']:>11.4g} + {row['sum']:<9.3g} {row['speedup']:>7.1f}x"
            cases[case] = cases.get(case, "") + cell
    for (model, machine, network), cells in cases.items():
        print(f"{model:<6}{machine:<9}{network:<12}{cells}")

"""How fast is a training step in one process, on two threads, and in two processes?

`mpiexec` starts two processes, and all ways to compute a step take turns in them. When a single process computes, the
other one sleeps.
"""

import statistics
import time
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from experiments.measuring.mpiexec import call_in_processes, find_mpiexec
from experiments.measuring.steps import LABEL_SMOOTHING, MAX_NORM, SIZES, Size
from experiments.measuring.timing import LEAST, TURN, WARM_UP, resident_peak, seconds_of
from experiments.report import Options, Parser, Rows, Table, listed
from minitransformer import Adam, CrossEntropyLoss, Transformer
from minitransformer.system.process import keep_freed_memory, limit_threads
from minitransformer.system.progress import tqdm
from minitransformer.training import step_with
from minitransformer.training.clipping import grad_norm
from minitransformer.training.parallel.communicator import ONE_PROCESS, Communicator
from minitransformer.training.parallel.connect import connect
from minitransformer.training.parallel.micro_batches import ByLength
from minitransformer.training.parallel.processes import ProcessParallel
from minitransformer.training.parallel.sharded import ShardedAdam, gathering
from minitransformer.training.parallel.threads import DataParallel
from minitransformer.training.watching.diagnostics import Diagnostics

PER_ROW = 10.0
SECONDS = {True: 90, False: 300}
THREADS = None
DROPOUT, LR = 0.1, 1e-4
PROCESSES = 2
MEMORY_OF = (1, 2, 4)  # processes whose memory is measured
ONE, TWO_THREADS, TWO, SHARDED, SUM = "1 process", "2 threads", "2 processes", "sharded", "sum"


class Way(NamedTuple):
    """One way to compute a step: how many processes and threads, and whether Adam is sharded."""

    is_shared: bool = False
    threads: int = 1
    is_sharded: bool = False


WAYS = {ONE: Way(), TWO_THREADS: Way(threads=2), TWO: Way(True), SHARDED: Way(True, is_sharded=True)}


def add_options(parser: Parser) -> None:
    """The options that only this experiment has."""
    parser.add_argument("sizes", nargs="*", metavar="SIZE", help=f"one or more of {', '.join(SIZES)} (default: all)")
    parser.add_argument("--memory", action="store_true", help="measure the peak memory of 1, 2 and 4 processes, too")


def check(options: Options) -> None:
    """Raise ValueError for an option that cannot be used."""
    for name in options.sizes:
        if name not in SIZES:
            raise ValueError(f"unknown size {name!r}; known sizes: {', '.join(SIZES)}")


def rows(options: Options) -> Rows:
    """The times of all ways, and with --memory the bytes of each process. Raises ValueError without MPI."""
    launcher = find_mpiexec("experiment processes")
    steps, memory = [], []
    for name in tqdm(options.sizes or list(SIZES), leave=False, unit="size"):
        call = f"time_steps({name!r}, {options.seconds!r}, connect())"
        steps.append(summary(name, call_in_processes(launcher, PROCESSES, __name__, call)))
        if options.memory:
            memory += [memory_of(launcher, name, count) for count in MEMORY_OF]
    return {"steps": steps, "memory": memory}


def tables(rows: Rows) -> list[Table]:
    """The times, and the memory if it was measured."""
    ways, cells = (TWO_THREADS, TWO, SHARDED), []
    columns = [name for way in ways for name in (f"{way} (ms)", "speed-up")]
    for row in rows["steps"]:
        times = [text for way in ways for text in (f"{row[way]:,.1f}", f"{row['speed-up'][way]:.2f}")]
        cells.append([row["size"], f"{row[ONE]:,.1f}", *times, f"{row[SUM]:.2f}"])
    title = "a step; speed-up: the time of one process divided by this one; sum: adding up the gradients"
    found = [Table(title, ["size", f"{ONE} (ms)", *columns, f"{SUM} (ms)"], cells)]
    if rows["memory"]:
        keys = {"Adam": "peak", "sharded": "peak_sharded", "m and v": "state", "m and v, sharded": "state_sharded"}
        memory: dict[str, tuple] = {"size": ("size",), "processes": ("processes",)}
        memory |= {heading: (key, ",.0f", 1e-6) for heading, key in keys.items()}
        found.append(listed("peak memory of each process (MB), and m and v in it", rows["memory"], memory))
    return found


def findings(rows: Rows) -> list[str]:
    """The share of the sum in a step of two processes."""
    return [
        f"{row['size']}: the sum takes {row[SUM] / row[TWO]:.0%} of a step of two processes." for row in rows["steps"]
    ]


def summary(name: str, times: dict[str, list[float]]) -> dict[str, Any]:
    """The median milliseconds of each way, and the medians of the ratios to one process."""
    speed_up = {way: statistics.median(a / b for a, b in zip(times[ONE], times[way], strict=True)) for way in WAYS}
    return {"size": name, **{way: 1e3 * statistics.median(found) for way, found in times.items()}, "speed-up": speed_up}


def make_step(size: Size, way: Way, communicator: Communicator) -> tuple[Callable[[], Any], Adam]:
    """A function that takes a training step, and its optimizer."""
    keep_freed_memory()
    model, batch = Transformer(size.config(DROPOUT)), size.make_batch()
    workers = DataParallel(model, CrossEntropyLoss(LABEL_SMOOTHING), way.threads, rank=communicator.rank)
    if way.is_sharded:
        optimizer: Adam = ShardedAdam(model.parameters(), communicator, lr=LR)
    else:
        optimizer = Adam(model.parameters(), lr=LR)
    optimizer.team = workers.team
    gradients: Any = ByLength(workers, workers.loss_fn)
    norm: Any = grad_norm
    if communicator.size > 1:
        shared = (workers.loss_fn, communicator, optimizer.parameters)
        gradients = ProcessParallel(gradients, *shared, sharded=way.is_sharded)
        norm = gradients.norm
    watch, norm_of = Diagnostics(gradients, workers, optimizer), partial(norm, team=workers.team)
    take_step: Any = gathering(step_with, optimizer) if isinstance(optimizer, ShardedAdam) else step_with

    def step() -> None:
        with limit_threads(way.threads):
            take_step(watch, optimizer, batch, MAX_NORM, check=watch.check, norm_of=norm_of)

    return step, optimizer


def time_steps(name: str, seconds: float, communicator: Communicator) -> dict[str, list[float]]:
    """Let all ways take turns for `seconds` -> {way: [seconds per step of each turn]}. All processes call it."""
    steps = {
        key: make_step(SIZES[name], way, communicator if way.is_shared else ONE_PROCESS) for key, way in WAYS.items()
    }
    calls = {key: step for key, (step, _) in steps.items()}
    gradient = np.zeros_like(steps[SHARDED][1].weights)
    calls[SUM] = lambda: communicator.add_up(gradient)
    shared = {key: key not in WAYS or WAYS[key].is_shared for key in calls}
    times: dict[str, list[float]] = {key: [] for key in calls}
    begin = time.perf_counter()
    while len(times[ONE]) < LEAST or communicator.collect(time.perf_counter() - begin < seconds)[0]:
        for key, call in calls.items():
            times[key] += take_turn(call, shared[key], communicator, warm_up=not times[key])
    return times


def take_turn(call: Callable[[], Any], is_shared: bool, communicator: Communicator, warm_up: bool) -> list[float]:
    """Call for about TURN seconds -> [seconds per call]. A process that has no part in it waits, and returns [0.0]."""
    communicator.wait()
    if not is_shared and not communicator.is_root:
        communicator.wait()
        return [0.0]
    for _ in range(WARM_UP if warm_up else 1):
        call()
    count = max(1, round(TURN / seconds_of(call)))
    if is_shared:
        count = communicator.collect(count)[0]
    seconds = seconds_of(lambda: [call() for _ in range(count)]) / count
    if not is_shared:
        communicator.wait()
    return [seconds]


def memory_of(launcher: str, name: str, count: int) -> dict[str, Any]:
    """The peak memory of a process, and its bytes of m and v, with Adam and with a sharded Adam."""
    row: dict[str, Any] = {"size": name, "processes": count}
    for kind, is_sharded in (("", False), ("_sharded", True)):
        call = f"measure_memory({name!r}, {is_sharded})"
        row[f"peak{kind}"], row[f"state{kind}"] = call_in_processes(launcher, count, __name__, call)
    return row


def measure_memory(name: str, is_sharded: bool) -> list[int]:
    """Take three steps -> the largest peak of a process, and its bytes of m and v. All processes call it."""
    communicator = connect()
    before = resident_peak()
    step, optimizer = make_step(SIZES[name], Way(True, is_sharded=is_sharded), communicator)
    for _ in range(WARM_UP):
        step()
    peaks = communicator.collect((resident_peak() - before, optimizer.m.nbytes + optimizer.v.nbytes))
    return [max(peak) for peak in zip(*peaks, strict=True)]

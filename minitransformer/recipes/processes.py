"""What several processes share that `mpiexec` has started to train one recipe. The rest of recipes/ knows of one.

The first process, the root, prints, evaluates and saves. The others take part in the training.
"""

import dataclasses
import os
from collections.abc import Iterator
from typing import Any

import numpy as np

from minitransformer.backend import backend_name
from minitransformer.recipes.options import TrainOptions, option_name, to_json
from minitransformer.system.launcher import place_in
from minitransformer.system.process import threads_are_chosen
from minitransformer.training import Adam, Muon
from minitransformer.training.parallel.connect import connect, join
from minitransformer.training.parallel.faults import Disagreement, check_same
from minitransformer.training.parallel.sharded import ShardedAdam
from minitransformer.training.parallel.strategy import Strategy
from minitransformer.training.parallel.threads import default_team_size, default_threads
from minitransformer.training.saving.checkpointer import SavedRun

CHANGE_ROUNDING = ("threads", "grad_accumulation_steps")  # options that divide the same sums in another way
CHANGE_ORDER = ("deterministic", "shard_optimizer")  # these, too, if the order matters
OTHER_BITS = "the results are not bit-identical to those of an uninterrupted run"


def is_root() -> bool:
    """Whether this process prints, evaluates and saves."""
    return connect().is_root


def launcher() -> str:
    """The beginning of a command that starts as many processes: "mpiexec -n 4 ", or nothing."""
    return f"mpiexec -n {connect().size} " if connect().size > 1 else ""


def how_many(name: str, options: TrainOptions, config: Any) -> str:
    """The end of the line that describes the training: ", 4 processes", or what would use the other cores."""
    if connect().size > 1:
        return f", {connect().size} processes"
    useful = default_threads(config, options.batch_size)
    if options.threads == useful == 1 < min(default_team_size(), options.batch_size):  # measured: docs/benchmarks.md
        return (
            "\none thread is best for steps as small as these; if a second core is idle, two processes take two thirds "
            f"of the time:\n  mpiexec -n 2 minitransformer train {name}    (the same options; docs/processes.md)"
        )
    return ""


def of_root(value: Any) -> Any:
    """The `value` that the root has."""
    return connect().collect(value)[0]


def how_many_share() -> tuple[int, int]:
    """How many share a batch, and how many share the memory and the processors of this machine."""
    return connect().size, connect().processes_here


def make_optimizer(options: TrainOptions, model: Any) -> Adam:
    """Adam as in the paper, or sharded over all processes; or Muon, which each process computes as a whole."""
    if options.optimizer == "muon":
        return Muon(model, weight_decay=options.weight_decay)
    if options.shard_optimizer:
        return ShardedAdam(model.parameters(), connect(), weight_decay=options.weight_decay)
    return Adam(model.parameters(), weight_decay=options.weight_decay)


def check_launched(given: dict[str, Any]) -> None:
    """ValueError for an option that does nothing in one process, unless a resumed run has it from before."""
    if given.get("shard_optimizer") and place_in(os.environ) is None:
        raise ValueError("--shard-optimizer needs several processes: start them with mpiexec -n N, or leave it out")


def strategy(options: TrainOptions) -> Strategy:
    """How threads and processes share a batch."""
    return Strategy(options.threads, connect())


def agree(task: str, options: TrainOptions, config: Any, source: dict[str, Any], steps_taken: int) -> TrainOptions:
    """The options of all processes, with the number of threads of each.

    Raises Disagreement unless all train the same task, from the same step, and have the same options, data and library,
    and there is a sequence for each.
    """
    communicator = connect()
    join().timeout = 60 * options.timeout
    values = {option_name(name): value for name, value in to_json(options).items()}
    first = {"the task": task, "the first step": steps_taken + 1}
    check_same(
        communicator, {**first, "the backend": backend_name(), "NumPy": np.__version__, **values, "the data": source}
    )
    if options.batch_size < communicator.size:
        raise Disagreement(
            f"--batch-size must be at least the number of processes, {communicator.size}, got {options.batch_size}"
        )
    threads = options.threads or min(communicator.collect(threads_of_each(config, options)))
    return dataclasses.replace(options, threads=threads)


def threads_of_each(config: Any, options: TrainOptions) -> int:
    """Threads of this process, if the processes on this machine share its processors."""
    of_batch, of_machine = how_many_share()
    threads = default_threads(config, -(-options.micro_batch_size // of_batch))
    return threads if threads_are_chosen() else max(1, min(threads, default_team_size() // of_machine))


def threads_as_before(saved: SavedRun) -> int | None:
    """The threads of each process if a run is resumed: those it had, but not more in total than before."""
    if saved.num_threads is None:
        return None
    return max(1, min(saved.num_threads, saved.num_threads * saved.processes // connect().size))


def other_bits(before: TrainOptions, options: TrainOptions, saved: SavedRun) -> Iterator[str]:
    """What changes the bits of a resumed run: other options, or another number of processes, in one line each."""
    processes = connect().size
    summands = _summands(options, processes)
    if summands is not None and summands == _summands(before, saved.processes):
        return
    if processes != saved.processes:
        yield f"number of processes {processes} instead of {saved.processes}: {OTHER_BITS}"
    for name in CHANGE_ROUNDING:
        old, new = getattr(before, name), getattr(options, name)
        if new != old:
            yield f"{option_name(name)} {new} instead of {old}: {OTHER_BITS}"
    if _orders(options, processes) != _orders(before, saved.processes):
        for name in CHANGE_ORDER:
            if getattr(options, name) != getattr(before, name):
                yield f"{'with' if getattr(options, name) else 'without'} {option_name(name)}: {OTHER_BITS}"


def _summands(options: TrainOptions, processes: int) -> tuple[int, int | None] | None:
    """How many gradients are added up in each step, one after another, and the threads that compute each of them.

    Runs that agree in this have the same bits. None if more matters: which process draws the dropout masks, or which
    sums are taken first.
    """
    steps = options.grad_accumulation_steps
    if not options.deterministic or options.dropout or min(steps, processes) > 1:
        return None
    return steps * processes, options.threads


def _orders(options: TrainOptions, processes: int) -> tuple[bool, bool]:
    """Whether the gradients of more than two processes, and those of micro batches, are added up in a fixed order.

    The order of two numbers does not matter.
    """
    of_processes = processes > 2 and (options.deterministic or options.shard_optimizer)
    return of_processes, options.grad_accumulation_steps > 1 and options.deterministic

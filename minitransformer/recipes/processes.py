"""What several processes share that `mpiexec` has started to train one recipe.

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
from minitransformer.training.parallel.connect import connect, join
from minitransformer.training.parallel.faults import Disagreement, check_same
from minitransformer.training.parallel.threads import default_team_size, default_threads
from minitransformer.training.saving.checkpointer import SavedRun


def launcher() -> str:
    """The beginning of a command that starts as many processes: "mpiexec -n 4 ", or nothing."""
    return f"mpiexec -n {connect().size} " if connect().size > 1 else ""


def threads_as_before(saved: SavedRun) -> int | None:
    """The threads of each process if a run is resumed: those it had, but not more in total than before."""
    if saved.num_threads is None:
        return None
    return max(1, min(saved.num_threads, saved.num_threads * saved.processes // connect().size))


def changes(before: TrainOptions, options: TrainOptions, saved: SavedRun) -> Iterator[str]:
    """What is different in a resumed run, in one line each: its options, and the number of processes."""
    new = to_json(options)
    for name, old in to_json(before).items():
        if new[name] != old:
            yield f"from now on {option_name(name)} {new[name]} instead of {old}"
    if connect().size != saved.processes:
        yield f"from now on {connect().size} processes instead of {saved.processes}"


def check_launched(given: dict[str, Any]) -> None:
    """ValueError for an option that does nothing in one process, unless a resumed run has it from before."""
    if given.get("shard_optimizer") and place_in(os.environ) is None:
        raise ValueError("--shard-optimizer needs several processes: start them with mpiexec -n N, or leave it out")


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
    threads = default_threads(config, -(-options.micro_batch_size // connect().size))
    return threads if threads_are_chosen() else max(1, min(threads, default_team_size() // connect().processes_here))

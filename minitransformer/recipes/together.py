"""Several processes that train one recipe: one of them locks the folder, and all have the same options."""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from minitransformer.backend import backend_name
from minitransformer.recipes.lock import locked
from minitransformer.recipes.options import TrainOptions, option_name, to_json
from minitransformer.training.parallel.communicator import Communicator
from minitransformer.training.parallel.connect import connect
from minitransformer.training.parallel.faults import Disagreement, check_same


@contextlib.contextmanager
def root_has_locked(folder: Path) -> Iterator[None]:
    """A `with` block in which no other training can use `folder`. Of several processes, the root holds the lock."""
    with locked(folder) if connect().is_root else contextlib.nullcontext():
        yield


def check_agreement(
    communicator: Communicator, task: str, step: int, options: TrainOptions, source: dict[str, Any]
) -> None:
    """Raises Disagreement unless all processes train the same task, from the same step, and have the same options,
    data and library, and there is a sequence for each."""
    values = {option_name(name): value for name, value in to_json(options).items()}
    first = {"the task": task, "the first step": step + 1, "the backend": backend_name(), "NumPy": np.__version__}
    check_same(communicator, {**first, **values, "the data": source})
    if options.batch_size < communicator.size:
        raise Disagreement(
            f"--batch-size must be at least the number of processes, {communicator.size}, got {options.batch_size}"
        )

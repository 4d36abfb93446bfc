"""The batches of a run, one after another, in such a way that a resumed run continues with the next."""

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np

from minitransformer.checks import check_integer
from minitransformer.data.task import TrainingBatch
from minitransformer.system.generators import generator_state, restore_generator


class Batches:
    """Draws batches of `size` from `data`, see data/task.py: one by one, or epoch by epoch if it has epochs.

    It saves the generator as it was at the beginning of the epoch, and how many batches were taken: so the data may
    draw its random numbers at any time in an epoch.
    """

    def __init__(self, data: Any, size: int, seed: int) -> None:
        self.data, self.size = data, size
        self.has_epochs = hasattr(data, "epoch")
        self.rng = np.random.default_rng([seed, 1])
        self._restart(0)

    def _restart(self, position):
        """Begin an epoch with the generator as it is, and skip the first `position` batches."""
        self.position, self._start = position, generator_state(self.rng)
        self._epoch: Iterator[TrainingBatch] = iter(())
        if self.has_epochs:
            self._epoch = itertools.islice(self.data.epoch(self.rng, self.size), position, None)

    def __iter__(self) -> "Batches":
        return self

    def __next__(self) -> TrainingBatch:
        """The next batch; after the last one of an epoch, the first one of the next.

        Raises ValueError for data with empty epochs.
        """
        if not self.has_epochs:
            return self.data.batch(self.rng, self.size)
        batch = next(self._epoch, None)
        if batch is None:
            self._restart(0)
            batch = next(self._epoch, None)
        if batch is None:
            raise ValueError("an epoch of the data has no batches")
        self.position += 1
        return batch

    def state(self) -> dict[str, Any]:
        """What `load_state` needs, as values that JSON can hold."""
        if not self.has_epochs:
            return {"data_rng": generator_state(self.rng)}
        return {"data_rng": self._start, "position": self.position}

    def load_state(self, facts: dict[str, Any]) -> None:
        """Continue from what `state` returned. Raises KeyError if something is missing, and ValueError or TypeError for
        a position that is no whole number of at least 0."""
        restore_generator(self.rng, facts["data_rng"])
        self._restart(check_integer("position", facts["position"], least=0) if self.has_epochs else 0)

"""What a training loop expects from its data: a task draws batches, and a batch has inputs and targets.

`ToyTask`, `PromptedTask`, `TextTask` and `MaskedTask` have this form, and so may a class of your own.
"""

from typing import Protocol

import numpy as np


class TrainingBatch(Protocol):
    """One batch: what the model reads, and what it should predict. All arrays are on the host.

    It must be a NamedTuple of arrays with the batch as first axis, because threads and micro batches get parts of it.
    """

    @property
    def inputs(self) -> tuple[np.ndarray, ...]:
        """The arguments of the model's forward pass, each with the batch as its first axis."""

    @property
    def targets(self) -> np.ndarray:
        """(B, T) token ids to compare the logits with. Positions that hold PAD do not count in the loss."""


class Task(Protocol):
    """A source of training batches."""

    def batch(self, rng: np.random.Generator, size: int) -> TrainingBatch:
        """Draw `size` training examples with `rng`."""

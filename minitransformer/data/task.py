"""What a training loop expects from its data: a task draws batches, and a batch has inputs and targets.

`ToyTask`, `PromptedTask`, `TextTask` and `MaskedTask` have this form, and so may a class of your own. This is a whole
task for a GPT, which learns to count:

    from typing import NamedTuple

    import numpy as np

    class Counts(NamedTuple):
        ids: np.ndarray  # (B, T)
        targets: np.ndarray  # (B, T)

        @property
        def inputs(self):
            return (self.ids,)

    class Counting:
        def batch(self, rng, size):
            starts = rng.integers(3, 10, size)  # the ids 0, 1 and 2 are padding, bos and eos
            rows = starts[:, None] + np.arange(9)
            return Counts(rows[:, :-1], rows[:, 1:])
"""

from collections.abc import Iterator
from typing import Protocol

import numpy as np


class TrainingBatch(Protocol):
    """One batch: what the model reads, and what it should predict. All arrays are on the host.

    It must be a NamedTuple of arrays with the batch as first axis, because threads and micro batches get parts of it.
    """

    @property
    def inputs(self) -> tuple[np.ndarray, ...]:
        """The arguments of the model's forward pass, each with the batch as its first axis.

        For a Transformer (source (B, S), target_in (B, T)), for GPT and BERT (ids (B, T),), all of them integers.
        """

    @property
    def targets(self) -> np.ndarray:
        """(B, T) token ids to compare the logits with. Positions with the model's padding do not count in the loss."""


class Task(Protocol):
    """A source of training batches. Nothing else is required; there is no class to inherit from."""

    def batch(self, rng: np.random.Generator, size: int) -> TrainingBatch:
        """Draw `size` training examples.

        All randomness must come from `rng`: then the same seed gives the same batches, and a resumed run continues as
        if it had not been interrupted.
        """


class EpochTask(Protocol):
    """A source of training batches that goes through its examples in epochs, such as `TranslationTask`."""

    def epoch(self, rng: np.random.Generator, size: int) -> Iterator[TrainingBatch]:
        """The batches of one epoch, of a size that `size` stands for. All randomness must come from `rng`."""

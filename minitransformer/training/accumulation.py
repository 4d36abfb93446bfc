"""Gradient accumulation: compute a batch in micro batches, one after another, so that it needs the memory of one."""

from collections.abc import Callable
from typing import Any

from minitransformer.data.task import TrainingBatch
from minitransformer.process import ThreadTeam
from minitransformer.training.parallel import DataParallel, part_weights, split_batch, weighted_sum


class GradientAccumulation:
    """Computes each batch in `steps` micro batches; the gradient is that of the whole batch.

    Every backward pass adds to the gradients, so nothing is needed except one pass for each micro batch, weighted by
    its share of the batch, before the optimizer steps.
    """

    def __init__(self, workers: DataParallel, steps: int = 1) -> None:
        self.workers, self.steps = workers, steps

    @property
    def team(self) -> ThreadTeam:
        """The threads that compute each micro batch."""
        return self.workers.team

    def map(self, function: Callable[..., Any], batch: TrainingBatch, measure: bool = False) -> tuple[Any, Any]:
        """As `DataParallel.map`. Raises ValueError if the batch has fewer sequences than micro batches."""
        if self.steps == 1:
            return self.workers.map(function, batch, measure)
        if len(batch.targets) < self.steps:
            raise ValueError(f"a batch of {len(batch.targets)} sequences cannot be cut into {self.steps} micro batches")
        parts = split_batch(batch, self.steps)
        weights = part_weights(self.workers.loss_fn, parts)
        results = [
            self.workers.map(function, part, measure, weight) for part, weight in zip(parts, weights, strict=True)
        ]
        losses, accuracies = zip(*results, strict=True)
        return weighted_sum(weights, losses), weighted_sum(weights, accuracies) if measure else None

"""Gradient accumulation: compute a batch in micro batches, one after another, so that it needs the memory of one.

A micro batch of very different lengths is cut once more, by length, so that less of the work is padding.
"""

from collections.abc import Callable
from typing import Any

from minitransformer.backend import backend_name
from minitransformer.data.by_length import cut_by_length
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
        """As `DataParallel.map`. A batch of fewer sequences than micro batches is computed one by one."""
        steps = min(self.steps, len(batch.targets))
        parts = [batch] if steps == 1 else split_batch(batch, steps)
        if backend_name() == "numpy":  # on a GPU, a part costs more than the padding that it saves
            parts = [part for micro_batch in parts for part in cut_by_length(micro_batch)]
        if len(parts) == 1:
            return self.workers.map(function, batch, measure)
        weights = part_weights(self.workers.loss_fn, parts)
        results = [
            self.workers.map(function, part, measure, weight) for part, weight in zip(parts, weights, strict=True)
        ]
        losses, accuracies = zip(*results, strict=True)
        return weighted_sum(weights, losses), weighted_sum(weights, accuracies) if measure else None

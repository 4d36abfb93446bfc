"""Gradient accumulation: compute a batch in micro batches, one after another, so that it needs the memory of one.

A micro batch of very different lengths is cut once more, by length, so that less of the work is padding.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from minitransformer.backend import backend_name
from minitransformer.core import Parameter
from minitransformer.data.by_length import cut_by_length
from minitransformer.data.task import TrainingBatch
from minitransformer.training.parallel.threads import DataParallel, split_batch, weighted_sum


class GradientAccumulation:
    """Computes each batch in `steps` micro batches; the gradient is that of the whole batch.

    Every backward pass adds to the gradients, so nothing is needed except one pass for each micro batch, weighted by
    its share of the batch, before the optimizer steps.

    The gradients of the parameters `each_alone` are computed for each micro batch from 0, and then added up. This takes
    one more array, and gives the same bits as `steps` processes that compute a micro batch each.
    """

    def __init__(self, workers: DataParallel, steps: int = 1, each_alone: Sequence[Parameter] = ()) -> None:
        self.workers, self.steps, self.each_alone = workers, steps, each_alone

    def map(
        self, function: Callable[..., Any], batch: TrainingBatch, measure: bool = False, num_terms: int | None = None
    ) -> tuple[Any, Any]:
        """As `DataParallel.map`. A batch of fewer sequences than micro batches is computed one by one.

        If the batch is a part of a larger one, `num_terms` is the number of terms in the loss of that one, and the
        gradient is the part's share of its gradient. Loss and accuracy are those of this batch alone.
        """
        micro_batches = self._cut(batch)
        counts = [self.workers.loss_fn.num_terms(part.targets) for parts in micro_batches for part in parts]
        own_terms = max(sum(counts), 1)
        shares = iter([count / max(num_terms or own_terms, 1) for count in counts])
        results = []
        for parts in self._each_alone(micro_batches):
            results += [self.workers.map(function, part, measure, next(shares)) for part in parts]
        losses, accuracies = zip(*results, strict=True)
        weights = [count / own_terms for count in counts]
        return weighted_sum(weights, losses), weighted_sum(weights, accuracies) if measure else None

    def _cut(self, batch: TrainingBatch) -> list[list[TrainingBatch]]:
        """The micro batches, each in parts of about the same length."""
        steps = min(self.steps, len(batch.targets))
        micro_batches = [batch] if steps == 1 else split_batch(batch, steps)
        if backend_name() != "numpy":  # on a GPU, a part costs more than the padding that it saves
            return [[micro_batch] for micro_batch in micro_batches]
        return [cut_by_length(micro_batch) for micro_batch in micro_batches]

    def _each_alone(self, micro_batches: list[list[TrainingBatch]]) -> Iterator[list[TrainingBatch]]:
        """Yield the micro batches; the gradients `each_alone` are 0 before each, and their sum in the end."""
        if len(micro_batches) == 1 or not self.each_alone:
            yield from micro_batches
            return
        totals = [parameter.grad.copy() for parameter in self.each_alone]
        for micro_batch in micro_batches:
            for parameter in self.each_alone:
                parameter.zero_grad()
            yield micro_batch
            for total, parameter in zip(totals, self.each_alone, strict=True):
                total += parameter.grad
        for total, parameter in zip(totals, self.each_alone, strict=True):
            parameter.grad = total

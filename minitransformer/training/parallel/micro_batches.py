"""One batch in parts that are computed one after another: micro batches, to save memory, and parts of one length."""

from collections.abc import Iterator, Sequence

from minitransformer.backend import backend_name
from minitransformer.config import OWN_IDS, ModelConfig
from minitransformer.core import Parameter
from minitransformer.data.by_length import cut_by_length
from minitransformer.data.task import TrainingBatch
from minitransformer.training.parallel.parts import count_terms, in_parts
from minitransformer.training.parallel.threads import split_batch
from minitransformer.training.step import Gradients, Measured


class ByLength:
    """Cuts each batch by length, so that less of the work is padding (see `cut_by_length`).

    On a GPU, a part costs more than the padding that it saves, and the batch stays whole.
    """

    def __init__(self, gradients: Gradients, loss_fn: object, config: ModelConfig = OWN_IDS) -> None:
        self.gradients, self.num_terms, self.config = gradients, count_terms(loss_fn), config

    def __call__(self, batch: TrainingBatch, weight: float = 1.0, measure: bool = False) -> Measured:
        """See `Gradients`."""
        parts = [batch] if backend_name() != "numpy" else cut_by_length(batch, self.config)
        if len(parts) == 1:
            return self.gradients(batch, weight, measure)
        return in_parts(self.gradients, parts, [self.num_terms(part.targets) for part in parts], weight, measure)


class GradientAccumulation:
    """Computes each batch in `steps` micro batches; the gradient is that of the whole batch.

    Every backward pass adds to the gradients, so nothing is needed except one pass for each micro batch, weighted by
    its share of the batch, before the optimizer steps. A batch of fewer sequences is computed one by one.

    The gradients of the parameters `each_alone` are computed for each micro batch from 0, and then added up. This takes
    one more array, and gives the same bits as `steps` processes that compute a micro batch each.
    """

    def __init__(self, gradients: Gradients, loss_fn: object, steps: int, each_alone: Sequence[Parameter] = ()) -> None:
        self.gradients, self.num_terms = gradients, count_terms(loss_fn)
        self.steps, self.each_alone = steps, each_alone

    def __call__(self, batch: TrainingBatch, weight: float = 1.0, measure: bool = False) -> Measured:
        """See `Gradients`."""
        parts = split_batch(batch, min(self.steps, len(batch.targets)))
        counts = [self.num_terms(part.targets) for part in parts]
        return in_parts(self.gradients, self._each_alone(parts), counts, weight, measure)

    def _each_alone(self, parts: list[TrainingBatch]) -> Iterator[TrainingBatch]:
        """Yield the micro batches; the gradients `each_alone` are 0 before each, and their sum in the end."""
        if len(parts) == 1 or not self.each_alone:
            yield from parts
            return
        totals = [parameter.grad.copy() for parameter in self.each_alone]
        for part in parts:
            for parameter in self.each_alone:
                parameter.zero_grad()
            yield part
            for total, parameter in zip(totals, self.each_alone, strict=True):
                total += parameter.grad
        for total, parameter in zip(totals, self.each_alone, strict=True):
            parameter.grad[...] = total

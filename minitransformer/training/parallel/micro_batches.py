"""One batch in parts that are computed one after another: micro batches, to save memory, and parts of one length."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from minitransformer.backend import backend_name
from minitransformer.config import OWN_IDS, ModelConfig
from minitransformer.core import Parameter
from minitransformer.data.by_length import cut_by_length
from minitransformer.training.parallel.parts import count_terms, shares_of, weighted
from minitransformer.training.parallel.threads import split_batch
from minitransformer.training.step import Gradients, Measured


class InParts:
    """The gradient of a batch from its parts, one after another. A subclass says in `cut` what the parts are.

    The loss is a mean over the n terms of a batch. With n_i of them in part i,

    loss = sum_i (n_i / n) loss_i        and therefore        grad = sum_i (n_i / n) grad_i

    Every backward pass adds to the gradients, so nothing is needed except one pass for each part.
    """

    def __init__(self, gradients: Gradients, loss_fn: object) -> None:
        self.gradients, self.num_terms = gradients, count_terms(loss_fn)

    def cut(self, batch: Any) -> list[Any]:
        """The parts of the batch."""
        raise NotImplementedError

    def in_turn(self, parts: list[Any]) -> Iterable[Any]:
        """The parts, each when its turn has come."""
        return parts

    def __call__(self, batch: Any, weight: float = 1.0, measure: bool = False) -> Measured:
        """See `Gradients`."""
        parts, results = self.cut(batch), []
        if len(parts) == 1:
            return self.gradients(parts[0], weight, measure)
        shares = shares_of([self.num_terms(part.targets) for part in parts])
        for part, share in zip(self.in_turn(parts), shares, strict=True):
            results.append(self.gradients(part, weight * share, measure))
        return weighted(results, shares)


class ByLength(InParts):
    """Cuts each batch by length, so that less of the work is padding (see `cut_by_length`).

    On a GPU, a part costs more than the padding that it saves, and the batch stays whole.
    """

    def __init__(self, gradients: Gradients, loss_fn: object, config: ModelConfig = OWN_IDS) -> None:
        super().__init__(gradients, loss_fn)
        self.config = config

    def cut(self, batch: Any) -> list[Any]:
        """Sequences of about one length each."""
        return [batch] if backend_name() != "numpy" else cut_by_length(batch, self.config)


class GradientAccumulation(InParts):
    """Computes each batch in `steps` micro batches, to save memory; the gradient is that of the whole batch.

    A batch of fewer sequences is computed one by one.

    The gradients of the parameters `each_alone` are computed for each micro batch from 0, and then added up. This takes
    one more array, and gives the same bits as `steps` processes that compute a micro batch each.
    """

    def __init__(self, gradients: Gradients, loss_fn: object, steps: int, each_alone: Sequence[Parameter] = ()) -> None:
        super().__init__(gradients, loss_fn)
        self.steps, self.each_alone = steps, each_alone

    def cut(self, batch: Any) -> list[Any]:
        """The micro batches."""
        return split_batch(batch, min(self.steps, len(batch.targets)))

    def in_turn(self, parts: list[Any]) -> Iterator[Any]:
        """Yield the micro batches; the gradients `each_alone` are 0 before each, and their sum in the end."""
        if not self.each_alone:
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

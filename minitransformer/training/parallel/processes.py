"""Data parallelism over processes: each computes its part of every batch, and the gradients are added up.

All processes hold the same weights, and draw the same batches from the same seed. Of each batch, process r takes part
r. The loss is a mean over the n tokens of the batch that are not padding. With n_r of them in part r,

    loss = sum_r (n_r / n) loss_r        and therefore        grad = sum_r (n_r / n) grad_r

So a process weights its gradient by its share of the tokens, and the sum over the processes is the gradient of the
whole batch. A mean of the processes' gradients would be wrong if their parts have different numbers of tokens. The norm
is taken of the sum, after it is complete, so all processes clip by the same factor and take the same step.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from minitransformer.core import Parameter
from minitransformer.data.task import TrainingBatch
from minitransformer.training.accumulation import GradientAccumulation
from minitransformer.training.diagnostics import Diagnostics, NotFiniteError
from minitransformer.training.parallel.communicator import Communicator
from minitransformer.training.parallel.threads import part_weights, split_batch


class ProcessParallel:
    """Shares each batch among processes; each computes its own part with `accumulation`.

    `parameters` are those of the optimizer, whose gradients are added up. With `in_order`, the sum is taken in the
    order of the ranks, and N processes give the same bits as one that accumulates the gradients of N parts, each on
    its own (`GradientAccumulation(each_alone=parameters)`). Which tokens a process gets does not depend on its speed.
    With `sharded`, a process gets the sum of its shard alone, see `ShardedAdam`.
    """

    def __init__(
        self,
        accumulation: GradientAccumulation,
        communicator: Communicator,
        parameters: Sequence[Parameter],
        in_order: bool = False,
        sharded: bool = False,
    ) -> None:
        self.accumulation, self.communicator = accumulation, communicator
        self.parameters, self.in_order, self.sharded = parameters, in_order, sharded

    @property
    def team(self) -> Any:
        """The threads of this process."""
        return self.accumulation.team

    def map(self, function: Callable[..., Any], batch: TrainingBatch, measure: bool = False) -> tuple[Any, Any]:
        """As `GradientAccumulation.map`; all processes must call it with the same batch.

        Loss and accuracy are those of the whole batch.
        """
        loss, accuracy = self.map_own_part(function, batch, measure)
        for parameter in self.parameters:
            if self.sharded:
                self.communicator.reduce_scatter(parameter.grad.reshape(-1))
            else:
                self.communicator.add_up(parameter.grad.reshape(-1), self.in_order)
        numbers = np.array([float(loss), float(accuracy or 0.0)])
        self.communicator.add_up(numbers, in_order=True)
        return numbers[0], numbers[1] if measure else None

    def map_own_part(
        self, function: Callable[..., Any], batch: TrainingBatch, measure: bool = False
    ) -> tuple[Any, Any]:
        """Compute this process's part, without the others -> its share of the loss and of the accuracy."""
        parts = split_batch(batch, self.communicator.size)
        own = parts[self.communicator.rank]
        share = part_weights(self.accumulation.workers.loss_fn, parts)[self.communicator.rank]
        if share == 0.0:  # fewer sequences than processes, or nothing but padding
            return 0.0, 0.0
        terms = sum(self.accumulation.workers.loss_fn.num_terms(part.targets) for part in parts)
        loss, accuracy = self.accumulation.map(function, own, measure, terms)
        return share * loss, share * accuracy if measure else None

    def check(
        self, diagnostics: Diagnostics, function: Callable[..., Any], batch: TrainingBatch, loss: Any, norm: Any
    ) -> None:
        """`Diagnostics.check` in all processes, which have the same loss and norm -> the same error, if there is one.

        Each process looks for the cause in its own part, and the message is that of the first that has found it.
        """
        try:
            diagnostics.check(partial(self.map_own_part, function, batch), loss, norm)
        except NotFiniteError as error:
            found = self.communicator.collect((error.anomaly is not None, str(error)))
            rank = next((rank for rank, (is_cause, _) in enumerate(found) if is_cause), None)
            if rank is not None:
                error.args = (f"{found[rank][1]}\n  {'process':<20} rank {rank} of {self.communicator.size}",)
            raise

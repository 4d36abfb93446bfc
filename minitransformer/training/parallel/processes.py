"""Data parallelism over processes: each computes its part of every batch, and the gradients are added up.

All processes hold the same weights, and draw the same batches from the same seed. Of each batch, process r takes part
r. The loss is a mean over the n tokens of the batch that are not padding. With n_r of them in part r,

    loss = sum_r (n_r / n) loss_r        and therefore        grad = sum_r (n_r / n) grad_r

So a process weights its gradient by its share of the tokens, and the sum over the processes is the gradient of the
whole batch. A mean of the processes' gradients, as PyTorch's DistributedDataParallel takes it, would be wrong if their
parts have different numbers of tokens. The norm is that of the complete sum, so all processes clip by the same factor
and take the same step.
"""

import math
import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from minitransformer.backend import to_device, to_host, xp
from minitransformer.core import Parameter
from minitransformer.data.task import TrainingBatch
from minitransformer.system.process import SINGLE_THREAD, ThreadTeam
from minitransformer.training.clipping import grad_norm, squares_of_blocks
from minitransformer.training.finite import NotFiniteError
from minitransformer.training.parallel.communicator import Communicator, ProcessError
from minitransformer.training.parallel.parts import count_terms, shares_of
from minitransformer.training.parallel.threads import split_batch
from minitransformer.training.step import Gradients, Measured
from minitransformer.training.watching.anomaly_hooks import AnomalyFound


class ProcessParallel:
    """Shares each batch among processes; each computes its own part with `gradients`.

    `parameters` are those of the optimizer, whose gradients are added up. With `in_order`, the sum is taken in the
    order of the ranks, and N processes give the same bits as one that accumulates the gradients of N parts, each on
    its own (see `GradientAccumulation`). Which tokens a process gets does not depend on its speed. With `sharded`, a
    process gets the sum of its shard alone, see `ShardedAdam`; then there is one parameter, a vector.

    Raises ProcessError if the processes begin with different weights.
    """

    def __init__(
        self,
        gradients: Gradients,
        loss_fn: Any,
        communicator: Communicator,
        parameters: Sequence[Parameter],
        in_order: bool = False,
        sharded: bool = False,
    ) -> None:
        self.gradients, self.num_terms, self.communicator = gradients, count_terms(loss_fn), communicator
        self.parameters, self.in_order, self.sharded = parameters, in_order, sharded
        self._check_weights()

    def _check_weights(self) -> None:
        """Raises ProcessError, in all processes, unless all have the same weights."""
        checksum = 0
        for parameter in self.parameters:
            checksum = zlib.crc32(np.ascontiguousarray(to_host(parameter.data)).data, checksum)
        if len(set(self.communicator.collect(checksum))) > 1:
            raise ProcessError("the processes begin with different weights: give their models the same seed")

    def __call__(self, batch: TrainingBatch, weight: float = 1.0, measure: bool = False) -> Measured:
        """See `Gradients`; all processes must call it with the same batch. It measures the whole batch."""
        found = None
        try:
            loss, accuracy = self.own_part(batch, weight, measure)
        except AnomalyFound as error:  # the others learn of it by the loss
            loss, accuracy, found = math.nan, math.nan, error
        for parameter in self.parameters:
            if self.sharded:
                self.communicator.reduce_scatter(parameter.grad.reshape(-1))
            else:
                self.communicator.add_up(parameter.grad.reshape(-1), self.in_order)
        numbers = np.array([float(loss), float(accuracy or 0.0)])
        self.communicator.add_up(numbers, in_order=True)
        if found:
            if self.sharded:
                self.communicator.collect([])  # the others compute the norm
            raise found
        return Measured(numbers[0], numbers[1] if measure else None)

    def norm(self, parameters: Sequence[Parameter], team: ThreadTeam = SINGLE_THREAD) -> xp.ndarray:
        """The norm of the sum of all gradients -> a 0-d array, the same in all processes."""
        if not self.sharded:
            return grad_norm(parameters, team)
        (flat,) = parameters
        shard = self.communicator.shards(flat.data.size)[self.communicator.rank]
        own = [float(square) for square in squares_of_blocks([flat.grad[shard]], team)]
        squares = [square for shard in self.communicator.collect(own) for square in shard]
        kind = flat.data.dtype.type
        return xp.sqrt(to_device(sum(map(kind, squares), start=kind(0.0))))

    def own_part(self, batch: TrainingBatch, weight: float = 1.0, measure: bool = False) -> Measured:
        """Compute this process's part, without the others -> its share of the loss and of the accuracy."""
        parts = split_batch(batch, self.communicator.size)
        shares = shares_of([self.num_terms(part.targets) for part in parts])  # n_r / n
        own, share = parts[self.communicator.rank], shares[self.communicator.rank]
        if share == 0.0:  # fewer sequences than processes, or only padding
            return Measured(0.0, 0.0)
        loss, accuracy = self.gradients(own, weight * share, measure)
        return Measured(share * loss, None if accuracy is None else share * accuracy)

    def agree_on(self, error: NotFiniteError) -> None:
        """Give the error, which all processes have, the cause that the first of them has found."""
        found = self.communicator.collect((error.anomaly, str(error)))
        rank = next((rank for rank, (anomaly, _) in enumerate(found) if anomaly), None)
        if rank is not None:
            where = f"\n  {'process':<20} rank {rank} of {self.communicator.size}"
            error.explain(found[rank][1] + where, found[rank][0])

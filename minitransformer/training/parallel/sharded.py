"""Adam whose running means m and v are spread over the processes (ZeRO stage 1: Rajbhandari et al. 2020, section 5.1).

With data parallelism alone (processes.py), every process holds the weights, their gradient, m and v of all parameters,
and computes the same update as the others. But an update needs no other parameter than its own, so each process can
do a part of it. Of the vector of all Psi parameters, process r owns shard r:

    g_r <- sum over the processes of their gradients of shard r        reduce-scatter
    n^2 <- sum over r of |g_r|^2                                       the norm for clipping: a number for each block
    m_r, v_r, theta_r <- Adam with g_r min(1, max_norm / n)            each process updates its own shard
    theta <- (theta_0, theta_1, ...)                                   all-gather

Adam works on every number alone, so the weights are those of the whole update. Only the norm is a sum over all shards,
and a shard consists of whole blocks of `clipping.BLOCK` numbers. So the squares are added up in the same order as in
one process, and even clipped weights have the same bits as those of an unsharded Adam, if the gradients have: with
`deterministic`, or with two processes. On a GPU the norm is a sum of sums, which may differ in its last bit.

Communication: an all-reduce, which adds up the gradients in all processes, is a reduce-scatter followed by an
all-gather, (N - 1) / N Psi numbers sent by each process in either of them. Here the all-gather comes after the update,
and sends weights instead of gradients. So it is the same volume, 2 (N - 1) / N Psi numbers.

Memory in float32, in bytes for each process: 4 Psi of weights, 4 Psi of gradients and 8 Psi / N of m and v, instead of
16 Psi. Stages 2 and 3 of the paper spread gradients and weights as well.
"""

from collections.abc import Callable, Iterable
from typing import Any

from minitransformer.core import Parameter
from minitransformer.training.optimizers import Adam
from minitransformer.training.parallel.communicator import Communicator


class ShardedAdam(Adam):
    """Adam for one of several processes with the same weights: it holds m and v of its shard, and moves this shard.

    It does not communicate. The gradient of the own shard must be the sum over all processes
    (`ProcessParallel(sharded=True)`, which has the norm, too), and the step is to be followed by a `gathering` of the
    weights: `Strategy` sees to both. The other arguments are those of Adam.
    """

    def __init__(self, parameters: Iterable[Parameter], communicator: Communicator, **options: Any) -> None:
        self.communicator = communicator
        super().__init__(parameters, **options)

    @property
    def shard(self) -> slice:
        """The part of `weights` that this process moves, and whose m and v it holds."""
        return self.communicator.shards(self.weights.size)[self.communicator.rank]


def gathering(step: Callable[..., Any], optimizer: ShardedAdam) -> Callable[..., Any]:
    """The training step `step`, after which each process takes the other shards from the processes that moved them."""

    def take_step(*arguments: Any, **options: Any) -> Any:
        result = step(*arguments, **options)
        optimizer.moving = True
        optimizer.communicator.all_gather(optimizer.weights)
        optimizer.moving = False
        return result

    return take_step


def gathered_state(optimizer: ShardedAdam) -> tuple[dict, dict]:
    """As `Adam.state`, with m and v of all processes, so that any number of them can continue. All must call it.

    The arrays are in the root alone; the others get {}.
    """
    communicator = optimizer.communicator
    arrays = {"adam.m": communicator.gather(optimizer.m), "adam.v": communicator.gather(optimizer.v)}
    return {name: array for name, array in arrays.items() if array is not None}, {"adam_steps": optimizer.t}

"""The communication between processes that train one model together.

Here it is for one process alone; `mpi.py` has it for those that `mpiexec` has started, and `connect.py` chooses. In the
words of torch.distributed:

    add_up            all_reduce, a sum
    reduce_scatter    reduce_scatter, the first half of all_reduce: each shard is added up in the process it belongs to
    all_gather        all_gather, the second half: each process sends its shard to all others
    collect           all_gather_object
    wait              barrier

A vector has one shard for each process. The methods that move shards are made of the others here, so that a subclass
may leave them out.
"""

from typing import Any

import numpy as np

from minitransformer.backend import to_device, to_host, xp
from minitransformer.training import clipping


class ProcessError(RuntimeError):
    """The processes cannot work together, or another one has failed."""


class Communicator:
    """One process alone: rank 0 of 1. Subclasses connect several."""

    rank = 0
    size = 1
    processes_here = 1  # on this machine
    timeout = 600.0  # seconds that this process waits for the others in one of the calls below

    @property
    def is_root(self) -> bool:
        """Whether this process prints, evaluates and writes."""
        return self.rank == 0

    def add_up(self, array: xp.ndarray, in_order: bool = False) -> None:
        """Replace `array` (N,), in place, by the sum of the arrays of all processes. All must call it.

        Each process gets the same bits. `in_order` adds them up in the order of the ranks, (a_0 + a_1) + a_2 and so on,
        whatever the number of machines. Otherwise the order is the library's choice, which may be faster.
        """

    def shards(self, length: int) -> list[slice]:
        """The part of a vector of `length` numbers that belongs to rank 0, to rank 1, and so on.

        A shard has whole blocks of `clipping.BLOCK` numbers, so that the norm of a sharded gradient is the root of the
        same sums as that of a whole one. A vector of fewer blocks than processes has empty shards.
        """
        blocks = -(-length // clipping.BLOCK)
        ends = [min(length, clipping.BLOCK * (blocks * (rank + 1) // self.size)) for rank in range(self.size)]
        return [slice(start, end) for start, end in zip([0, *ends], ends, strict=False)]

    def reduce_scatter(self, array: xp.ndarray) -> None:
        """Replace the own shard of `array` (N,), in place, by its sum over all processes. All must call it.

        The sum is taken in the order of the ranks. The other shards are of no use afterwards.
        """
        self.add_up(array, in_order=True)

    def all_gather(self, array: xp.ndarray) -> None:
        """Replace every shard of `array` (N,), in place, by that of the process it belongs to. All must call it."""
        if self.size == 1:
            return
        shards = self.shards(len(array))
        for shard, numbers in zip(shards, self.collect(to_host(array[shards[self.rank]]).copy()), strict=True):
            array[shard] = to_device(numbers)

    def gather(self, shard: xp.ndarray) -> np.ndarray | None:
        """The shards of all processes as one vector (N,) on the host. All must call it; only the root gets it."""
        shards = self.collect(to_host(shard).copy())
        return np.concatenate(shards) if self.is_root else None

    def collect(self, value: Any) -> list[Any]:
        """[the `value` of rank 0, of rank 1, ...], in each process. All must call it, with what can be pickled."""
        return [value]

    def wait(self) -> None:
        """Wait until all processes are here. A process that waits leaves its processor to others."""

    def end_all(self, status: int) -> None:
        """End all processes now, with this exit status. One process alone goes on, and ends by itself."""


ONE_PROCESS = Communicator()

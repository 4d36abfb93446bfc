"""Processes that `mpiexec` has started, over MPI (mpi4py)."""

import os
import sys
import time
from typing import Any

import numpy as np
from mpi4py import MPI

from minitransformer.backend import to_device, to_host, xp
from minitransformer.training.parallel.communicator import Communicator

PAUSE = 0.002  # seconds between two looks while waiting
FLUSH = 0.2  # seconds for the launcher to pass on what was printed: it drops the rest when it ends the processes


class MPICommunicator(Communicator):
    """The processes of an MPI communicator; by default all that were started together.

    Arrays of a GPU travel through the host's memory.
    """

    def __init__(self, communicator: MPI.Comm = MPI.COMM_WORLD) -> None:
        self.mpi = communicator
        self.rank, self.size = communicator.Get_rank(), communicator.Get_size()
        names = communicator.allgather(MPI.Get_processor_name())
        self.processes_here = names.count(names[self.rank])

    def add_up(self, array: xp.ndarray, in_order: bool = False) -> None:
        """See `Communicator.add_up`."""
        if self.size == 1:
            return
        numbers = to_host(array)
        if in_order:
            self._add_up_in_order(numbers)
        else:
            self.mpi.Allreduce(MPI.IN_PLACE, numbers)
        if numbers is not array:
            array[...] = to_device(numbers)

    def _add_up_in_order(self, numbers: np.ndarray) -> None:
        """Each process adds up one part of the vector, in the order of the ranks, and sends the sum to all others."""
        counts = [len(part) for part in np.array_split(numbers, self.size)]
        starts = np.cumsum([0, *counts[:-1]])
        own = counts[self.rank]
        kind = MPI._typedict[numbers.dtype.char]
        received = np.empty((self.size, own), numbers.dtype)
        self.mpi.Alltoallv(
            [numbers, counts, starts, kind], [received, [own] * self.size, np.arange(self.size) * own, kind]
        )
        total = received[0]
        for other in received[1:]:
            total += other
        self.mpi.Allgatherv([total, own, kind], [numbers, counts, starts, kind])

    def collect(self, value: Any) -> list[Any]:
        """See `Communicator.collect`."""
        return self.mpi.allgather(value)

    def wait(self) -> None:
        """See `Communicator.wait`. MPI's own barrier would keep a processor busy."""
        request = self.mpi.Ibarrier()
        while not request.Test():
            time.sleep(PAUSE)

    def end_all(self, status: int) -> None:
        """See `Communicator.end_all`. MPI's own message is discarded, since the error has been reported."""
        sys.stdout.flush()
        time.sleep(FLUSH)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        self.mpi.Abort(status)

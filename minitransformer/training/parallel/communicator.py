"""What processes that train one model together say to each other.

The interface is small: a sum over all processes, the objects of all processes, a wait, and an end. Here it is for one
process alone; `mpi.py` has it for the processes that `mpiexec` has started.
"""

import functools
import os
from collections.abc import Mapping
from typing import Any

from minitransformer.backend import backend_name, xp

LAUNCHERS = {  # the variables with which a launcher tells a process which one it is, and of how many
    "PMI_RANK": "PMI_SIZE",  # MPICH, Intel MPI
    "OMPI_COMM_WORLD_RANK": "OMPI_COMM_WORLD_SIZE",  # Open MPI
    "PMIX_RANK": "OMPI_COMM_WORLD_SIZE",
    "MV2_COMM_WORLD_RANK": "MV2_COMM_WORLD_SIZE",  # MVAPICH
}


class ProcessError(RuntimeError):
    """The processes cannot work together, or another one has failed."""


class Communicator:
    """One process alone: rank 0 of 1. Subclasses connect several."""

    rank = 0
    size = 1
    processes_here = 1  # on this machine

    @property
    def is_root(self) -> bool:
        """Whether this process prints, evaluates and writes."""
        return self.rank == 0

    def add_up(self, array: xp.ndarray, in_order: bool = False) -> None:
        """Replace `array` (N,), in place, by the sum of the arrays of all processes. All must call it.

        Each process gets the same bits. `in_order` adds them up in the order of the ranks, (a_0 + a_1) + a_2 and so on,
        whatever the number of machines. Otherwise the order is the library's choice, which may be faster.
        """

    def collect(self, value: Any) -> list[Any]:
        """[the `value` of rank 0, of rank 1, ...], in each process. All must call it, with what can be pickled."""
        return [value]

    def wait(self) -> None:
        """Wait until all processes are here. A process that waits leaves its processor to others."""

    def end_all(self, status: int) -> None:
        """End all processes now, with this exit status. One process alone goes on, and ends by itself."""


ONE_PROCESS = Communicator()


@functools.cache
def connect() -> Communicator:
    """The communicator of this process, see `communicator_of`."""
    return communicator_of(os.environ)


def communicator_of(environment: Mapping[str, str]) -> Communicator:
    """The communicator of `mpiexec` if it has started a process in this environment, else ONE_PROCESS.

    With the backend CuPy, this also chooses a GPU for the process, and NCCL for its sums if it can; see `choose_gpu`.
    Raises ProcessError if mpi4py is missing, or belongs to another MPI than `mpiexec`.
    """
    variable = next((name for name in LAUNCHERS if name in environment), None)
    if variable is None:
        return ONE_PROCESS
    size = int(environment.get(LAUNCHERS[variable], "1"))
    try:
        from minitransformer.training.parallel.mpi import MPICommunicator
    except ImportError as error:
        if size == 1:
            return ONE_PROCESS
        raise ProcessError(
            f"mpiexec has started {size} processes, but they cannot talk to each other ({error}): "
            "install mpi4py, with pip install 'minitransformer[mpi]'"
        ) from error
    communicator = MPICommunicator()
    if communicator.size != size:
        raise ProcessError(
            f"mpiexec has started {size} processes, but mpi4py sees {communicator.size}: "
            "mpiexec and mpi4py must belong to the same MPI"
        )
    if backend_name() == "cupy":
        from minitransformer.training.parallel.nccl import choose_gpu

        return choose_gpu(communicator)
    return communicator

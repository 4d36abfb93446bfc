"""Which of several processes this one is, as its launcher (`mpiexec`) says, and how it ends before it joins the others.

MPICH's launcher waits for a process that ends before it has joined the others, and so do they, in the library of MPI.
"""

import contextlib
import os
import time
from collections.abc import Mapping
from typing import NamedTuple, NoReturn

RANK_AND_SIZE = {  # the variables of each launcher
    "PMI_RANK": "PMI_SIZE",  # MPICH, Intel MPI
    "OMPI_COMM_WORLD_RANK": "OMPI_COMM_WORLD_SIZE",  # Open MPI
    "PMIX_RANK": "SLURM_STEP_NUM_TASKS",  # srun of Slurm
    "MV2_COMM_WORLD_RANK": "MV2_COMM_WORLD_SIZE",  # MVAPICH
}
GRACE = 0.7  # seconds in which the root may report an error that all processes have; less than signals.REPEAT
FLUSH = 0.2  # seconds for the launcher to pass on what was printed: it drops the rest when it ends the processes


class Place(NamedTuple):
    """The place of this process among those that were started together."""

    rank: int
    size: int | None  # None if the launcher does not say it

    def end_all(self, status: int) -> NoReturn:
        """End this process, which has not joined the others, and ask MPICH's launcher to end them.

        Other launchers end the others by themselves, or these end when they have waited long enough.
        """
        time.sleep(FLUSH)
        with contextlib.suppress(KeyError, ValueError, OSError):
            os.write(int(os.environ["PMI_FD"]), f"cmd=abort exitcode={status}\n".encode())
        raise SystemExit(status)


def place_in(environment: Mapping[str, str]) -> Place | None:
    """The place of the process with this environment; None if no launcher has started it."""
    for rank, size in RANK_AND_SIZE.items():
        if rank in environment:
            return Place(int(environment[rank]), int(environment[size]) if size in environment else None)
    return None


def wait_for_root(rank: int, size: int | None) -> str:
    """Give the root the time to report an error that all have, and to end all -> how the report of this one begins."""
    if rank == 0:
        return ""
    time.sleep(GRACE)
    return f"rank {rank} of {size or 'several'}: "

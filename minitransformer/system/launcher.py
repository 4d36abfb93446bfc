"""Which of several processes this one is, as its launcher (`mpiexec`) says in environment variables."""

from collections.abc import Mapping
from typing import NamedTuple

RANK_AND_SIZE = {  # the variables of each launcher
    "PMI_RANK": "PMI_SIZE",  # MPICH, Intel MPI
    "OMPI_COMM_WORLD_RANK": "OMPI_COMM_WORLD_SIZE",  # Open MPI
    "PMIX_RANK": "SLURM_STEP_NUM_TASKS",  # srun of Slurm
    "MV2_COMM_WORLD_RANK": "MV2_COMM_WORLD_SIZE",  # MVAPICH
}


class Place(NamedTuple):
    """The place of this process among those that were started together."""

    rank: int
    size: int | None  # None if the launcher does not say it


def place_in(environment: Mapping[str, str]) -> Place | None:
    """The place of the process with this environment; None if no launcher has started it."""
    for rank, size in RANK_AND_SIZE.items():
        if rank in environment:
            return Place(int(environment[rank]), int(environment[size]) if size in environment else None)
    return None

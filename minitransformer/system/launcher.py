"""Which of several processes this one is, as its launcher (`mpiexec`) says, and how it ends before it joins the others.

MPICH's launcher waits for a process that ends before it has joined the others, and so do they, in the library of MPI.
"""

import contextlib
import os
import time
from collections.abc import Mapping
from pathlib import Path
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


def ended_here() -> str:
    """Which processes of this machine have ended, in words, or "" if none has, or if that cannot be found out.

    It is found out in Linux, with MPICH's launcher: its children are the processes. Only the first of those that remain
    gets an answer.
    """
    count, size = (int(os.environ.get(name, 0)) for name in ("MPI_LOCALNRANKS", "PMI_SIZE"))
    try:
        launcher = os.getpid()
        while _rank_of(launcher) is not None:  # a process may have been started by a script
            launcher = int(Path(f"/proc/{launcher}/stat").read_text("utf-8").rpartition(")")[2].split()[1])
        children = Path(f"/proc/{launcher}/task/{launcher}/children").read_text("utf-8").split()
        ranks = [rank for rank in map(_rank_of, children) if rank is not None]
    except OSError:
        return ""
    if len(children) >= count or int(os.environ["PMI_RANK"]) != min(ranks):
        return ""
    lost = sorted({*range(size)} - {*ranks}) if count == size else ()
    return f"rank {', '.join(map(str, lost))}" if lost else "a process on this machine"


def _rank_of(pid: int | str) -> int | None:
    """The rank in the environment of a process, or None."""
    variables = dict(each.partition(b"=")[::2] for each in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0"))
    return int(variables[b"PMI_RANK"]) if b"PMI_RANK" in variables else None

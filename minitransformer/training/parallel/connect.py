"""Which communicator a process has: that of all processes that a launcher has started, or one for itself alone."""

import functools
import os
import platform
import warnings
from collections.abc import Mapping

from minitransformer.backend import backend_name
from minitransformer.system.devices import use_gpu
from minitransformer.system.launcher import place_in
from minitransformer.training.parallel.communicator import ONE_PROCESS, Communicator, ProcessError


@functools.cache
def connect() -> Communicator:
    """The communicator of this process, with the backend that it has chosen; all processes have the same.

    With the backend CuPy, the processes of a machine take GPU 0, GPU 1 and so on.
    """
    communicator = join()
    if communicator is not ONE_PROCESS and backend_name() == "cupy":
        machines = communicator.collect(platform.node())
        use_gpu(machines[: communicator.rank].count(machines[communicator.rank]))
    return communicator


@functools.cache
def join() -> Communicator:
    """The communicator of this process over the host's memory, see `communicator_of`. It needs no backend yet."""
    return communicator_of(os.environ)


def communicator_of(environment: Mapping[str, str]) -> Communicator:
    """The communicator of all processes if `mpiexec` has started this one with `environment`, else ONE_PROCESS.

    Raises ProcessError if mpi4py is missing, or belongs to another MPI than `mpiexec`, or if others do not join.
    """
    place = place_in(environment)
    if place is None:
        return ONE_PROCESS
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # mpi4py warns of another MPI, which is refused below
            from minitransformer.training.parallel.mpi import MPICommunicator
    except (ImportError, RuntimeError) as error:  # without mpi4py, or without the library of an MPI
        if place.size == 1:
            return ONE_PROCESS
        raise ProcessError(
            f"mpiexec has started {place.size or 'several'} processes, but they cannot talk to each other ({error}): "
            "install mpi4py, with pip install -e '.[mpi]'"
        ) from error
    communicator = MPICommunicator()
    if communicator.size != (place.size or communicator.size):
        raise ProcessError(
            f"mpiexec has started {place.size} processes, but mpi4py sees {communicator.size}: "
            "mpiexec and mpi4py must belong to the same MPI"
        )
    return communicator

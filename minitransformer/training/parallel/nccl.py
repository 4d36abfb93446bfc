"""Processes with a GPU each, over NCCL: arrays go from GPU to GPU, without a detour through the host's memory.

This has not run on a GPU yet. The tests hold it to a strict stand-in for `cupy.cuda.nccl` (tests/strict/nccl.py).
"""

import platform
from typing import Any

import numpy as np

from minitransformer.backend import to_host, xp
from minitransformer.training.parallel.communicator import Communicator

cupy: Any = xp  # used only where the backend is CuPy: a type checker takes xp for NumPy, which has no `cuda`

KINDS = {  # what NCCL calls the dtypes that it can add up
    "float32": "NCCL_FLOAT32",
    "float64": "NCCL_FLOAT64",
    "int32": "NCCL_INT32",
    "int64": "NCCL_INT64",
}
CHUNK = 2**22  # numbers that are added up in order at a time: it takes memory for as many from each process


def choose_gpu(communicator: Communicator) -> Communicator:
    """Choose a GPU for this process, and return the fastest communicator for it. All processes must call it.

    On each machine, process 0 takes GPU 0, and so on. If each process has a GPU of its own and CuPy has NCCL, the
    communicator is NCCL's. Otherwise it is `communicator`, over the host's memory: NCCL does not share a GPU.
    """
    count = cupy.cuda.runtime.getDeviceCount()
    has_nccl = bool(getattr(cupy.cuda.nccl, "available", False))
    everyones = communicator.collect((platform.node(), count, has_nccl))
    machines = [machine for machine, _, _ in everyones]
    index = machines[: communicator.rank].count(machines[communicator.rank])  # among the processes of this machine
    cupy.cuda.Device(index % count).use()
    if all(nccl and machines.count(machine) <= gpus for machine, gpus, nccl in everyones):
        return NCCLCommunicator(communicator)
    return communicator


class NCCLCommunicator(Communicator):
    """The processes of `base`, a communicator over the host's memory, with sums of a GPU's arrays over NCCL.

    Everything else, and arrays of the host, go over `base`. Make it after this process has chosen its GPU: rank 0 draws
    an identifier for the group, and sends it to the others over `base`.
    """

    def __init__(self, base: Communicator) -> None:
        self.base = base
        self.rank, self.size, self.processes_here = base.rank, base.size, base.processes_here
        identifier = base.collect(cupy.cuda.nccl.get_unique_id() if base.is_root else None)[0]
        self.nccl = cupy.cuda.nccl.NcclCommunicator(self.size, identifier, self.rank)

    def add_up(self, array: xp.ndarray, in_order: bool = False) -> None:
        """See `Communicator.add_up`. It does not wait for the GPU: what is called next waits there.

        Raises TypeError for complex numbers and other dtypes that NCCL does not add up, and ValueError for an array
        that is not contiguous, of which NCCL would add up the wrong numbers.
        """
        if isinstance(array, np.ndarray):
            self.base.add_up(array, in_order)
            return
        kind = kind_of(array)
        if in_order:
            for start in range(0, array.size, CHUNK):
                self._add_up_in_order(array[start : start + CHUNK], kind)
        else:
            memory: Any = array.data  # of the GPU
            place, stream = memory.ptr, cupy.cuda.get_current_stream().ptr
            self.nccl.allReduce(place, place, array.size, kind, cupy.cuda.nccl.NCCL_SUM, stream)

    def _add_up_in_order(self, part: Any, kind: int) -> None:
        """Each process gets the numbers of all, and adds them up in the order of the ranks."""
        received: Any = xp.empty((self.size, part.size), part.dtype)
        stream = cupy.cuda.get_current_stream().ptr
        self.nccl.allGather(part.data.ptr, received.data.ptr, part.size, kind, stream)
        part[...] = received[0]
        for other in received[1:]:
            part += other

    def all_gather(self, array: xp.ndarray) -> None:
        """See `Communicator.all_gather`. NCCL's own takes only shards of one length, so each rank broadcasts its own.

        Raises TypeError and ValueError as `add_up`.
        """
        if isinstance(array, np.ndarray):
            self.base.all_gather(array)
            return
        kind, stream = kind_of(array), cupy.cuda.get_current_stream().ptr
        for rank, shard in enumerate(self.shards(array.size)):
            part: Any = array[shard]
            if part.size:
                self.nccl.bcast(part.data.ptr, part.size, kind, rank, stream)

    def gather(self, shard: xp.ndarray) -> np.ndarray | None:
        """See `Communicator.gather`."""
        return self.base.gather(to_host(shard))

    def collect(self, value: Any) -> list[Any]:
        """See `Communicator.collect`."""
        return self.base.collect(value)

    def wait(self) -> None:
        """See `Communicator.wait`."""
        self.base.wait()

    def end_all(self, status: int) -> None:
        """See `Communicator.end_all`."""
        self.base.end_all(status)


def kind_of(array: xp.ndarray) -> int:
    """NCCL's number for the dtype of a contiguous array.

    Raises TypeError for another dtype than those of KINDS, and ValueError for an array with gaps.
    """
    if array.dtype.name not in KINDS:
        raise TypeError(f"NCCL takes {', '.join(KINDS)}, got {array.dtype.name}")
    if not array.flags.c_contiguous:
        raise ValueError("NCCL takes contiguous arrays, got one with gaps: copy it first")
    return getattr(cupy.cuda.nccl, KINDS[array.dtype.name])

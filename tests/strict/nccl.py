"""NCCL's rules without a GPU: a stand-in for `cupy.cuda`, for several ranks that are threads of one process.

    cuda = Cuda(gpus=2)
    with use_backend(device(cuda)): ...

NCCL takes an address, a count and a type, and believes them. This one knows the array behind each address, and refuses
what would be garbage or a crash on a GPU: an address of the host, a type that is not the array's, an array with gaps, a
count beyond its end. Where the real one would wait forever, because the ranks call different things, all ranks get an
error.
"""

import threading
from types import SimpleNamespace

from tests.ranks import Board
from tests.strict.array import Address
from tests.strict.strict import strict

ID_LENGTH = 128
ITEMS = {"NCCL_INT32": 2, "NCCL_INT64": 4, "NCCL_FLOAT16": 6, "NCCL_FLOAT32": 7, "NCCL_FLOAT64": 8}
NAMES = {code: name.removeprefix("NCCL_").lower() for name, code in ITEMS.items()}
STREAM = 0x57AEA


class NcclError(RuntimeError):
    """What NCCL, or this stand-in, refuses."""


def device(cuda):
    """An array module like `strict`, called cupy, with this `cuda`."""
    return SimpleNamespace(**{**vars(strict), "__name__": "cupy", "cuda": cuda})


class Cuda:
    """`cupy.cuda` of a machine with so many GPUs. Each thread has a current device, as in CUDA."""

    def __init__(self, gpus, has_nccl=True):
        self.current = threading.local()
        self.runtime = SimpleNamespace(getDeviceCount=lambda: gpus)
        self.nccl = Nccl(self) if has_nccl else SimpleNamespace(available=False)
        self.Device = lambda index: SimpleNamespace(use=lambda: self._use(index, gpus))

    def _use(self, index, gpus):
        if not 0 <= index < gpus:
            raise RuntimeError(f"invalid device ordinal {index}")
        self.current.device = index

    @staticmethod
    def get_current_stream():
        """The one stream."""
        return SimpleNamespace(ptr=STREAM)


class Nccl:
    """`cupy.cuda.nccl`. `calls` are those of rank 0."""

    available = True
    NCCL_SUM = 0

    def __init__(self, cuda):
        self.cuda, self.boards, self.calls, self.failed, self.lock = cuda, {}, [], False, threading.Lock()
        vars(self).update(ITEMS)

    def refuse(self, why):
        """Raise NcclError, and let no rank wait for this one."""
        with self.lock:
            self.failed = True
            for board in self.boards.values():
                board.fail()
        raise NcclError(why)

    def get_unique_id(self):
        """A tuple of 128 numbers, another one each time."""
        return (len(self.boards) + 1, *range(1, ID_LENGTH))

    def NcclCommunicator(self, ndev, commId, rank):
        """The communicator of one rank: waits for all others, which must bring the same id and a GPU of their own."""
        if not isinstance(commId, tuple) or len(commId) != ID_LENGTH:
            self.refuse("commId must be the tuple that get_unique_id returned")
        with self.lock:
            board = self.boards.setdefault(commId, Board(ndev))
            board.failed = self.failed
        gpu = getattr(self.cuda.current, "device", 0)
        communicator = OneRank(self, board, rank, gpu)
        if len(set(communicator.meet(gpu, "init"))) < ndev:
            self.refuse("duplicate GPU: two ranks use the same device")
        return communicator


class OneRank:
    """`NcclCommunicator`, once it is made."""

    def __init__(self, nccl, board, rank, gpu):
        self.nccl, self.board, self.rank, self.gpu, self.met = nccl, board, rank, gpu, 0

    def meet(self, value, call):
        """The values of all ranks, which must make the same call."""
        self.met += 1
        everyones = self.board.show(self.met, self.rank, (value, call))
        if len({other for _, other in everyones}) > 1:
            self.nccl.refuse(f"the ranks would wait forever: {[other for _, other in everyones]}")
        return [other for other, _ in everyones]

    def allReduce(self, sendbuf, recvbuf, count, datatype, op, stream):
        """The sum; the order of the ranks is NCCL's choice: here from the last to the first."""
        if op != self.nccl.NCCL_SUM:
            self.nccl.refuse("only sums are used")
        sent, received = self._behind(sendbuf, count, datatype), self._behind(recvbuf, count, datatype)
        everyones = self._send(sent, ("allReduce", count, datatype, op), stream)
        total = everyones[-1]
        for other in everyones[-2::-1]:
            total = total + other
        received[...] = total

    def allGather(self, sendbuf, recvbuf, count, datatype, stream):
        """What all ranks have sent, in their order."""
        sent = self._behind(sendbuf, count, datatype)
        received = self._behind(recvbuf, count * self.board.size, datatype)
        for rank, other in enumerate(self._send(sent, ("allGather", count, datatype), stream)):
            received[rank * count : (rank + 1) * count] = other

    def bcast(self, buff, count, datatype, root, stream):
        """The root's numbers, in all ranks."""
        numbers = self._behind(buff, count, datatype)
        numbers[...] = self._send(numbers, ("bcast", count, datatype, root), stream)[root]

    def _send(self, sent, call, stream):
        if stream != STREAM:
            self.nccl.refuse("not the current stream")
        if getattr(self.nccl.cuda.current, "device", 0) != self.gpu:
            self.nccl.refuse("this thread uses another GPU than its communicator")
        if self.rank == 0:
            self.nccl.calls.append(call)
        return self.meet(sent.copy(), call)

    def _behind(self, address, count, datatype):
        """The first `count` numbers of the array at an address, as a flat view."""
        if not isinstance(address, Address):
            self.nccl.refuse("an illegal memory access: this is no address of a device array")
        array = address.host
        if NAMES.get(datatype) != array.dtype.name:
            self.nccl.refuse(f"the array is {array.dtype.name}, and is read as {NAMES.get(datatype)}")
        if not array.flags.c_contiguous:
            self.nccl.refuse("the array has gaps, which would be added up, too")
        if count > array.size:
            self.nccl.refuse(f"the array has {array.size} numbers, and {count} would be read")
        return array.reshape(-1)[:count]

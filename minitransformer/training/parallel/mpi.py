"""Processes that `mpiexec` has started, over MPI (mpi4py).

Each operation is one that does not block, and `_finish` waits for it: so a process that hangs ends all, after a while.
"""

import contextlib
import ctypes
import os
import pickle
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import mpi4py
import numpy as np

from minitransformer.backend import to_device, to_host, xp
from minitransformer.system.launcher import FLUSH
from minitransformer.training.parallel.communicator import Communicator, ProcessError

mpi4py.rc(initialize=False, finalize=True)  # `start` initializes it
from mpi4py import MPI  # noqa: E402

PAUSE = 0.002  # seconds between two checks while waiting
BUSY = 0.01  # seconds without such a pause at first
PIECE = 2**18  # numbers that are added up at a time: so few that they stay in the processor's cache
LOOK = 0.5  # seconds after which a signal is handled, while the processes join
LONGEST = 60.0  # seconds in which all processes must join, as Python starts slowly from some network file systems


class MPICommunicator(Communicator):
    """The processes of an MPI communicator; by default all that were started together.

    Arrays of a GPU travel through the host's memory.
    """

    def __init__(self, communicator: MPI.Comm = MPI.COMM_WORLD) -> None:
        start()
        self.mpi = communicator
        self.rank, self.size = communicator.Get_rank(), communicator.Get_size()
        names = self.collect(MPI.Get_processor_name())
        self.processes_here = names.count(names[self.rank])
        unlink_shared_memory()

    def _finish(self, request: MPI.Request, busy: float = BUSY) -> None:
        """Wait for an operation that all processes must begin; after `busy` seconds, yield the processor.

        Raises ProcessError after `timeout` seconds.
        """
        start = time.monotonic()
        while not request.Test():
            waited = time.monotonic() - start
            if waited > busy:
                time.sleep(PAUSE)
            if waited > self.timeout:
                raise ProcessError(f"another process has not answered for {self.timeout:g} seconds (--timeout)")

    def add_up(self, array: xp.ndarray, in_order: bool = False) -> None:
        """See `Communicator.add_up`."""
        if self.size == 1:
            return
        with on_host(array) as numbers:
            if in_order:
                self._add_up_shards(numbers)
                self._send_shards(numbers)
            else:
                for start in range(0, len(numbers), PIECE):
                    self._finish(self.mpi.Iallreduce(MPI.IN_PLACE, numbers[start : start + PIECE]))

    def reduce_scatter(self, array: xp.ndarray) -> None:
        """See `Communicator.reduce_scatter`. MPI's own took twice as long, and memory for a shard."""
        if self.size > 1:
            with on_host(array) as numbers:
                self._add_up_shards(numbers)

    def all_gather(self, array: xp.ndarray) -> None:
        """See `Communicator.all_gather`."""
        if self.size > 1:
            with on_host(array) as numbers:
                self._send_shards(numbers)

    def gather(self, shard: xp.ndarray) -> np.ndarray | None:
        """See `Communicator.gather`."""
        numbers, counts = to_host(shard), self.collect(len(shard))
        whole = np.empty(sum(counts), numbers.dtype) if self.is_root else None
        self._finish(self.mpi.Igatherv(numbers, None if whole is None else [whole, (counts, starts(counts))]))
        return whole

    def _add_up_shards(self, numbers: np.ndarray) -> None:
        """Each process adds up its shard, in the order of the ranks; a piece at a time, to save memory."""
        shards = self.shards(len(numbers))
        for begin in range(0, max(lengths(shards)), PIECE):
            pieces = [slice(min(s.start + begin, s.stop), min(s.start + begin + PIECE, s.stop)) for s in shards]
            counts = lengths(pieces)
            own_counts = [counts[self.rank]] * self.size  # from each rank, as many numbers as the own piece has
            received = np.empty((self.size, counts[self.rank]), numbers.dtype)
            sent = [numbers, (counts, [piece.start for piece in pieces])]
            self._finish(self.mpi.Ialltoallv(sent, [received, (own_counts, starts(own_counts))]))
            total = received[0]
            for other in received[1:]:
                total += other
            numbers[pieces[self.rank]] = total

    def _send_shards(self, numbers: np.ndarray) -> None:
        """Each process sends its shard to all others."""
        counts = lengths(self.shards(len(numbers)))
        self._finish(self.mpi.Iallgatherv(MPI.IN_PLACE, [numbers, (counts, starts(counts))]))

    def collect(self, value: Any) -> list[Any]:
        """See `Communicator.collect`."""
        data, lengths = np.frombuffer(pickle.dumps(value), np.uint8), np.zeros(self.size, int)
        self._finish(self.mpi.Iallgather(np.array([len(data)]), lengths))
        counts, everyones = lengths.tolist(), np.empty(lengths.sum(), np.uint8)
        self._finish(self.mpi.Iallgatherv(data, [everyones, (counts, starts(counts))]))
        return [pickle.loads(part.tobytes()) for part in np.split(everyones, starts(counts)[1:])]

    def wait(self) -> None:
        """See `Communicator.wait`. MPI's own barrier would keep a processor busy."""
        self._finish(self.mpi.Ibarrier(), busy=0.0)

    def end_all(self, status: int) -> None:
        """See `Communicator.end_all`. MPI's own message is discarded, since the error has been reported."""
        sys.stdout.flush()
        time.sleep(FLUSH)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        self.mpi.Abort(status)


def start() -> None:
    """Start MPI, which waits for all processes. Raises ProcessError if one of them does not join.

    mpi4py would keep Python's lock until then, so that nothing could end the wait, not even a signal.
    """
    if MPI.Is_initialized():
        return
    initialize = getattr(ctypes.CDLL(MPI.__file__), "MPI_Init_thread", None)
    if initialize is None:  # in Windows, where an extension does not show the functions that it uses
        MPI.Init_thread()
        return
    arguments = (None, None, MPI.THREAD_MULTIPLE, ctypes.byref(ctypes.c_int()))
    thread = threading.Thread(target=initialize, args=arguments, daemon=True)
    thread.start()
    end = time.monotonic() + LONGEST
    while thread.is_alive():
        if time.monotonic() > end:
            raise ProcessError(f"some processes have not joined the others within {LONGEST:g} seconds")
        thread.join(LOOK)
    MPI.COMM_WORLD.Set_errhandler(MPI.ERRORS_RETURN)  # and mpi4py raises them


def unlink_shared_memory() -> None:
    """Unlink the memory that MPICH shares among the processes of a machine, once all of them have opened it.

    It stays usable until they end. Otherwise it would remain in /dev/shm after a process that was killed.
    """
    with contextlib.suppress(OSError):  # there is no such list except in Linux
        for line in Path("/proc/self/maps").read_text("utf-8").splitlines():
            path = line.split()[-1]
            if path.startswith("/dev/shm/mpich"):
                Path(path).unlink(missing_ok=True)


@contextlib.contextmanager
def on_host(array: xp.ndarray) -> Iterator[np.ndarray]:
    """A `with` block that works on the numbers of `array` in the host's memory; the array gets them back."""
    numbers = to_host(array)
    yield numbers
    if numbers is not array:
        array[...] = to_device(numbers)


def lengths(parts: list[slice]) -> list[int]:
    """How many numbers each part of a vector has."""
    return [part.stop - part.start for part in parts]


def starts(counts: list[int]) -> list[int]:
    """Where each part of a vector begins, if they have so many numbers and follow each other."""
    return [sum(counts[:i]) for i in range(len(counts))]

"""Several ranks in one process: a communicator whose ranks are threads, for tests."""

import contextvars
import threading
from concurrent.futures import ThreadPoolExecutor

from minitransformer.backend import to_host
from minitransformer.training.parallel.communicator import Communicator

PATIENCE = 60  # seconds until a rank that waits for the others gives up


class Meeting:
    """Where the threads of one group meet."""

    def __init__(self, size):
        self.size, self.barrier, self.brought = size, threading.Barrier(size, timeout=PATIENCE), [None] * size
        self.calls = []  # of rank 0: what was called, in order

    def exchange(self, rank, value):
        """[the value of rank 0, of rank 1, ...], in each thread."""
        self.brought[rank] = value
        self.barrier.wait()
        values = list(self.brought)
        self.barrier.wait()  # before one of them brings its next value
        return values


class ThreadRank(Communicator):
    """One rank of a group of threads. It is strict about what it is given, and all ranks must make the same calls."""

    def __init__(self, meeting, rank):
        self.meeting, self.rank, self.size = meeting, rank, meeting.size
        self.processes_here = meeting.size

    def add_up(self, array, in_order=False):
        assert array.ndim == 1
        assert array.flags.c_contiguous
        if self.rank == 0:
            self.meeting.calls.append(("add_up", array.shape))
        what = (array.shape, array.dtype, in_order)
        everyones = self.meeting.exchange(self.rank, (what, array.copy()))
        assert all(other == what for other, _ in everyones), "the ranks add up different arrays"
        total = everyones[0][1].copy()
        for _, other in everyones[1:]:
            total += other
        array[...] = total

    def collect(self, value):
        return self.meeting.exchange(self.rank, value)

    def wait(self):
        self.meeting.barrier.wait()

    def __deepcopy__(self, memo):
        return self


def in_ranks(size, function, calls=None):
    """[function(communicator of rank 0), of rank 1, ...], all at the same time, with the backend of the caller.

    The first error of a rank ends the waiting of the others, and is raised. `calls`, a list, gets the calls of rank 0.
    """
    meeting = Meeting(size)

    def run(rank):
        try:
            return function(ThreadRank(meeting, rank))
        except BaseException:
            meeting.barrier.abort()
            raise

    with ThreadPoolExecutor(size) as pool:
        jobs = [pool.submit(contextvars.copy_context().run, run, rank) for rank in range(size)]
    errors = [job.exception() for job in jobs if job.exception()]
    for error in sorted(errors, key=lambda error: isinstance(error, threading.BrokenBarrierError)):
        raise error
    if calls is not None:
        calls += meeting.calls
    return [job.result() for job in jobs]


def same_in_all(arrays):
    """The one array that all ranks have, bit for bit, on the host."""
    first, *others = (to_host(array) for array in arrays)
    assert all(other.tobytes() == first.tobytes() and other.shape == first.shape for other in others)
    return first

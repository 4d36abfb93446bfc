"""Processes for tests, each a thread of this process: the same messages, without MPI."""

import pickle
import threading
from concurrent.futures import ThreadPoolExecutor

from minitransformer.training.parallel.communicator import Communicator

LONGEST_WAIT = 60.0  # seconds until a thread that waits for the others gives up


class ThreadCommunicator(Communicator):
    """Rank `rank` of the threads that share `letters` and `barrier`. Objects are copied, as between processes."""

    def __init__(self, rank, letters, barrier):
        self.rank, self.size, self.processes_here = rank, len(letters), len(letters)
        self.letters, self.barrier = letters, barrier

    def collect(self, value):
        self.letters[self.rank] = pickle.dumps(value)
        self.wait()
        values = [pickle.loads(letter) for letter in self.letters]
        self.wait()
        return values

    def add_up(self, array, in_order=False):
        first, *others = self.collect(array)
        for other in others:
            first += other
        array[...] = first

    def wait(self):
        self.barrier.wait(LONGEST_WAIT)


def in_threads(size, function):
    """[function(communicator) of rank 0, of rank 1, ...]. An error in one ends all, and is raised."""
    letters, barrier = [b""] * size, threading.Barrier(size)

    def work(rank):
        try:
            return function(ThreadCommunicator(rank, letters, barrier))
        except BaseException:
            barrier.abort()
            raise

    with ThreadPoolExecutor(size) as pool:
        futures = [pool.submit(work, rank) for rank in range(size)]
    errors = [future.exception() for future in futures]
    own = [error for error in errors if error and not isinstance(error, threading.BrokenBarrierError)]
    for error in own or filter(None, errors):
        raise error
    return [future.result() for future in futures]

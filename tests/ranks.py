"""Several ranks in one process, for tests without MPI: each is a thread with a communicator of its own."""

import contextvars
import pickle
import threading

import numpy as np

from minitransformer.backend import to_host
from minitransformer.training.parallel.communicator import Communicator

PATIENCE = 60.0  # seconds until a rank that waits for the others fails


class LeftAloneError(Exception):
    """A rank waits for another one that has failed."""


class Board:
    """Where the ranks show each other what they have."""

    def __init__(self, size):
        self.size, self.calls, self.failed, self.change = size, {}, False, threading.Condition()

    def show(self, number, rank, value):
        """Show `value` in the call of this number -> the values of all, in the order of the ranks."""
        with self.change:
            shown = self.calls.setdefault(number, {})
            shown[rank] = value
            self.change.notify_all()
            self.change.wait_for(lambda: len(shown) == self.size or self.failed, PATIENCE)
            if len(shown) < self.size:
                raise LeftAloneError
            return [shown[rank] for rank in range(self.size)]

    def fail(self):
        """Let nobody wait any more."""
        with self.change:
            self.failed = True
            self.change.notify_all()


class ThreadRank(Communicator):
    """One of `size` threads, which must all make the same calls in the same order.

    `calls` is what this rank has called.
    """

    def __init__(self, rank, size, board):
        self.rank, self.size, self.processes_here, self.board, self.calls = rank, size, size, board, []

    def show(self, what, value):
        """Show (what, value) -> the values of all."""
        self.calls.append(what)
        shown = self.board.show(len(self.calls), self.rank, (what, value))
        assert [other for other, _ in shown] == [what] * self.size, f"the ranks make other calls: {shown}"
        return [value for _, value in shown]

    def add_up(self, array, in_order=False):
        assert array.ndim == 1
        assert array.flags.c_contiguous
        everyones = self.show(("add_up", array.shape, str(array.dtype), in_order), array.copy())
        total = everyones[0].copy()
        for other in everyones[1:]:
            total += other
        array[...] = total

    def reduce_scatter(self, array):
        """As usual, and the other shards become useless."""
        super().reduce_scatter(array)
        self.show(("reduce_scatter", array.shape), None)
        own = self.shards(len(array))[self.rank]
        array[: own.start] = array[own.stop :] = np.nan

    def collect(self, value):
        return [pickle.loads(other) for other in self.show("collect", pickle.dumps(value))]

    def wait(self):
        self.show("wait", None)

    def end_all(self, status):
        self.board.fail()
        raise SystemExit(status)

    def __deepcopy__(self, memo):
        return self


def outcomes_in_ranks(size, function):
    """[function(communicator) of rank 0, of rank 1, ...]; what it raises takes the place of a result.

    A rank that waits for one that has failed raises LeftAloneError.
    """
    board, results = Board(size), [None] * size

    def work(rank):
        try:
            results[rank] = function(ThreadRank(rank, size, board))
        except BaseException as error:
            results[rank] = error
            board.fail()

    # a copy of the context carries the backend into the threads
    threads = [threading.Thread(target=contextvars.copy_context().run, args=(work, rank)) for rank in range(size)]
    errors = np.geterr()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert np.geterr() == errors
    return results


def in_ranks(size, function):
    """As `outcomes_in_ranks`, but raises what a rank has raised."""
    results = outcomes_in_ranks(size, function)
    errors = [result for result in results if isinstance(result, BaseException)]
    for error in sorted(errors, key=lambda error: isinstance(error, LeftAloneError)):
        raise error
    return results


def same_in_all(arrays):
    """The one array that all ranks have, bit for bit, on the host."""
    first, *others = (to_host(array) for array in arrays)
    assert all(other.tobytes() == first.tobytes() and other.shape == first.shape for other in others)
    return first

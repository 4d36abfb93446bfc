"""The running process, made fast for training: who keeps freed memory, how many threads multiply, who shares work."""

import contextlib
import contextvars
import ctypes
import functools
import os
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

try:
    from threadpoolctl import ThreadpoolController
except ImportError:  # on a bare machine, where the matrix product keeps its threads
    ThreadpoolController = None

# mallopt's parameters, from glibc's malloc.h
M_TRIM_THRESHOLD, M_TOP_PAD, M_MMAP_THRESHOLD, M_ARENA_MAX = -1, -2, -3, -8
THREAD_VARIABLES = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")


def keep_freed_memory():
    """Ask the C library to keep freed memory for the next array -> whether it will.

    By default glibc hands the memory of large arrays back to the system, which clears it page by page when the next
    array asks for it: 4,438 page faults in a training step of the tiny benchmark, and 23.2 ms in place of 15.5
    (measured 2026-11-21 with glibc 2.36). One arena for all threads, as the others cannot hold a large array. Holds for
    the whole process; does nothing where there is no glibc.
    """
    if not sys.platform.startswith("linux"):
        return False
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):
        return False
    sizes = {M_MMAP_THRESHOLD: 32 << 20, M_TRIM_THRESHOLD: 512 << 20, M_TOP_PAD: 64 << 20, M_ARENA_MAX: 1}
    answers = [mallopt(parameter, size) for parameter, size in sizes.items()]
    return all(answers)


def threads_are_chosen():
    """Whether the user's environment says how many threads a matrix product may take."""
    return any(os.environ.get(variable) for variable in THREAD_VARIABLES)


@functools.cache
def _blas():
    """The libraries of NumPy's matrix product, looked for once: it takes a millisecond."""
    return ThreadpoolController().select(user_api="blas")


def _set_threads(counts):
    """Give each library its number of threads, from whichever thread of the process.

    threadpoolctl 3.8 would let one of them alone do it, so that they do not fight over it; here a lock takes care.
    """
    for library, count in zip(_blas().lib_controllers, counts, strict=True):
        getattr(library, "_real_set_num_threads", library.set_num_threads)(count)


def _current_threads():
    return [library.get_num_threads() or 1 for library in _blas().lib_controllers]


def num_threads():
    """How many threads NumPy's matrix product takes, but for teams that are at work (1 if it cannot be told)."""
    if ThreadpoolController is None:
        return 1
    with _Limit.lock:
        return _Limit.count_without_teams()


def limit_threads(count, of_team=False):
    """A context in which NumPy's matrix product takes `count` threads; None changes nothing.

    The library has one such number for the whole process, and a float32 product differs in its last bits with it. So
    the limits of all threads of the process are kept together: those of teams at work (`of_team`) count before others,
    and of these the newest; when the last one ends, the number is what it was before the first.
    """
    if count is None or ThreadpoolController is None:
        return contextlib.nullcontext()
    return _Limit(count, of_team)


class _Limit:
    """A limit that is in force from when it is made until its `with` block ends."""

    lock = threading.Lock()
    in_force = ()  # of all threads, the newest last
    before = ()  # the numbers of threads of all libraries before the first of them

    def __init__(self, count, of_team):
        self.count, self.of_team = count, of_team
        with self.lock:
            if not _Limit.in_force:
                _Limit.before = _current_threads()
            self.change((*_Limit.in_force, self))

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        with self.lock:
            self.change(tuple(limit for limit in _Limit.in_force if limit is not self))

    @staticmethod
    def change(limits):
        """Let these be in force."""
        _Limit.in_force = limits
        newest = sorted(limits, key=lambda limit: limit.of_team)[-1:]  # those of teams come last
        _set_threads([newest[0].count] * len(_Limit.before) if newest else _Limit.before)

    @staticmethod
    def count_without_teams():
        """The number of threads if no team were at work."""
        if not any(limit.of_team for limit in _Limit.in_force):
            return max(_current_threads(), default=1)
        others = [limit.count for limit in _Limit.in_force if not limit.of_team]
        return others[-1] if others else max(_Limit.before, default=1)


class Team:
    """A few threads of this process that share work; with one, all of it is done in the caller's.

    NumPy lets go of Python's lock while it computes, so threads that work on large arrays really do run at once.
    """

    def __init__(self, size=1):
        self.size = size
        self._pool = ThreadPoolExecutor(size) if size > 1 else None

    def map(self, function, *lists):
        """[function(*items) for items in zip(*lists)], member k taking the items k, k + size, k + 2 size ..."""
        calls = list(zip(*lists, strict=True))
        if self._pool is None or len(calls) < 2:
            return [function(*items) for items in calls]
        results = [None] * len(calls)

        def take_share(first):
            for i in range(first, len(calls), self.size):
                results[i] = function(*calls[i])

        # the context carries settings such as np.errstate into the other threads
        contexts = (contextvars.copy_context() for _ in range(self.size))
        shares = [self._pool.submit(context.run, take_share, k) for k, context in enumerate(contexts)]
        for share in shares:
            share.result()  # raises here what was raised there
        return results


ALONE = Team()

"""Settings of the running process that make training fast: freed memory, BLAS threads, and threads that share work."""

import contextlib
import contextvars
import ctypes
import functools
import os
import sys
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor, wait
from typing import Any

import numpy as np

from minitransformer.backend import backend_name

try:
    from threadpoolctl import ThreadpoolController
except ImportError:  # without it, the matrix product keeps its number of threads
    ThreadpoolController = None

# parameters of mallopt, from glibc's malloc.h
M_TRIM_THRESHOLD, M_TOP_PAD, M_MMAP_THRESHOLD, M_ARENA_MAX = -1, -2, -3, -8
THREAD_VARIABLES = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
MIN_NUMBERS = 2**16  # in a thread's (B, T, C): with fewer, threads wait for Python's lock more than they compute


@functools.cache
def keep_freed_memory() -> bool:
    """Ask the C library to keep freed memory for the next array. Returns whether it will.

    By default glibc returns the memory of large arrays to the system, which clears it page by page when the next array
    needs it: 4,438 page faults in a training step of the tiny benchmark, and 23.2 ms instead of 15.5 (measured
    2026-11-21 with glibc 2.36). Reading 4 x 1,024 tokens takes 0.85 of its time. All threads share one arena, because
    the other arenas cannot hold a large array. The setting is for the whole process. Without glibc nothing happens.
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


def threads_are_chosen() -> bool:
    """Whether an environment variable sets the number of BLAS threads."""
    return any(os.environ.get(variable) for variable in THREAD_VARIABLES)


@functools.cache
def _blas():
    """The BLAS libraries that NumPy uses. The search takes a millisecond and is done once."""
    return ThreadpoolController().select(user_api="blas")


def _set_threads(counts: Iterable[int]) -> None:
    """Set the number of threads of each library, from any thread of the process.

    threadpoolctl 3.8 allows this in one thread only, to avoid conflicts. Here a lock prevents them.
    """
    for library, count in zip(_blas().lib_controllers, counts, strict=True):
        getattr(library, "_real_set_num_threads", library.set_num_threads)(count)


def _current_threads() -> list[int]:
    return [library.get_num_threads() or 1 for library in _blas().lib_controllers]


def blas_threads() -> int:
    """The number of threads of NumPy's matrix product, ignoring the limits of running ThreadTeams (1 if unknown)."""
    if ThreadpoolController is None:
        return 1
    with _Limit.lock:
        return _Limit.count_without_teams()


def limit_threads(num_threads: int | None, of_team: bool = False) -> contextlib.AbstractContextManager:
    """A context in which NumPy's matrix product uses `num_threads` threads. None changes nothing.

    BLAS has one such number for the whole process, and the last bits of a float32 product depend on it. So the limits
    that different threads set are kept in one list. The limits of running teams (`of_team`) win over the others, and
    the newest limit wins over older ones. When the last limit ends, the number is what it was before the first.
    """
    if num_threads is None or ThreadpoolController is None:
        return contextlib.nullcontext()
    return _Limit(num_threads, of_team)


class _Limit:
    """A limit that is active from its construction to the end of its `with` block."""

    lock = threading.Lock()
    active: tuple["_Limit", ...] = ()  # the limits of all threads, the newest last
    before: tuple[int, ...] = ()  # the thread counts of all libraries before the first limit

    def __init__(self, count: int, of_team: bool):
        self.count, self.of_team = count, of_team
        with self.lock:
            if not _Limit.active:
                _Limit.before = tuple(_current_threads())
            self.change((*_Limit.active, self))

    def __enter__(self) -> "_Limit":
        return self

    def __exit__(self, *exception: object) -> None:
        with self.lock:
            self.change(tuple(limit for limit in _Limit.active if limit is not self))

    @staticmethod
    def change(limits: tuple["_Limit", ...]) -> None:
        """Make these the active limits."""
        _Limit.active = limits
        newest = sorted(limits, key=lambda limit: limit.of_team)[-1:]  # those of teams come last
        _set_threads([newest[0].count] * len(_Limit.before) if newest else _Limit.before)

    @staticmethod
    def count_without_teams() -> int:
        """The number of threads if no team were running."""
        if not any(limit.of_team for limit in _Limit.active):
            return max(_current_threads(), default=1)
        others = [limit.count for limit in _Limit.active if not limit.of_team]
        return others[-1] if others else max(_Limit.before, default=1)


class ThreadTeam:
    """A few threads that share work. A team of one works in the caller's thread.

    NumPy releases Python's global interpreter lock while it computes, so threads with large arrays run in parallel.
    Each thread computes its matrix products alone: otherwise it would start BLAS threads of its own.
    """

    def __init__(self, size: int = 1):
        self.size = size
        self._pool = ThreadPoolExecutor(size) if size > 1 else None

    def map(self, function: Callable[..., Any], *lists: Iterable[Any]) -> list[Any]:
        """[function(*items) for items in zip(*lists)]. Thread k computes the items k, k + size, k + 2 size ..."""
        calls = list(zip(*lists, strict=True))
        if self._pool is None or len(calls) < 2:
            return [function(*items) for items in calls]
        results: list[Any] = [None] * len(calls)
        errors = np.geterr()

        def compute_share(first: int) -> None:
            with np.errstate(**errors):
                for i in range(first, len(calls), self.size):
                    results[i] = function(*calls[i])

        # the copied context carries the backend into the other threads, and from NumPy 2 np.errstate as well
        contexts = (contextvars.copy_context() for _ in range(self.size))
        with limit_threads(1, of_team=True):
            shares = [self._pool.submit(context.run, compute_share, k) for k, context in enumerate(contexts)]
            wait(shares)
            for share in shares:
                share.result()  # raises an exception of that thread here
        return results


SINGLE_THREAD = ThreadTeam(1)


def team_of_blas() -> ThreadTeam:
    """A team of as many threads as a matrix product has here: of one on a GPU, and where a team is at work already."""
    if ThreadpoolController is None or backend_name() != "numpy":
        return SINGLE_THREAD
    return _kept_team(max(_current_threads(), default=1), os.getpid())


@functools.cache
def _kept_team(size, _process):
    """The threads of a process do not live on in one that it forks, so each has a team of its own."""
    return ThreadTeam(size)

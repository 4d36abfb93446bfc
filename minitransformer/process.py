"""Settings of the running process that make training fast: who keeps freed memory, and how many threads multiply."""

import contextlib
import ctypes
import os
import sys

from threadpoolctl import threadpool_info, threadpool_limits

M_TRIM_THRESHOLD, M_TOP_PAD, M_MMAP_THRESHOLD = -1, -2, -3  # mallopt's parameters, from glibc's malloc.h
THREAD_VARIABLES = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")


def keep_freed_memory():
    """Ask the C library to keep freed memory for the next array -> whether it will.

    By default glibc hands the memory of large arrays back to the system, which clears it page by page when the next
    array asks for it: 4,438 page faults in a training step of the tiny benchmark, and 23.2 ms in place of 15.5
    (measured 2026-11-21 with glibc 2.36). Holds for the whole process; does nothing where there is no glibc.
    """
    if not sys.platform.startswith("linux"):
        return False
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):
        return False
    sizes = {M_MMAP_THRESHOLD: 32 << 20, M_TRIM_THRESHOLD: 512 << 20, M_TOP_PAD: 64 << 20}
    answers = [mallopt(parameter, size) for parameter, size in sizes.items()]
    return all(answers)


def threads_are_chosen():
    """Whether the user's environment says how many threads a matrix product may take."""
    return any(os.environ.get(variable) for variable in THREAD_VARIABLES)


def num_threads():
    """How many threads NumPy's matrix product takes now (1 if it cannot be told)."""
    return max((info["num_threads"] for info in threadpool_info() if info["user_api"] == "blas"), default=1)


def limit_threads(count):
    """A context in which NumPy's matrix product takes `count` threads; None changes nothing."""
    return contextlib.nullcontext() if count is None else threadpool_limits(count, user_api="blas")

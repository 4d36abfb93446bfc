"""One name, `xp`, for two array libraries: NumPy on the CPU and CuPy on the GPU.

This is the only file that knows CuPy. All mathematics is written against `xp`, which looks up the current library
at each use, so `from minitransformer.backend import xp` stays right after a switch:

    use_backend("cupy")              # from here on
    with use_backend("numpy"): ...   # only inside the block

`numpy` itself keeps meaning the host: data, checkpoints and initial weights are NumPy arrays, and cross over at
`to_device` and `to_host` alone.
"""

import importlib
import math
import os

import numpy as np

BACKENDS = ("numpy", "cupy")


class BackendUnavailableError(RuntimeError):
    """The chosen array library cannot be used here; the message says what is missing and how to get it."""


def _import_cupy():
    try:
        cupy = importlib.import_module("cupy")
    except ImportError as error:
        raise BackendUnavailableError(
            "backend 'cupy' needs the package CuPy, which is not installed: "
            "pip install 'minitransformer[cuda12]' (or [cuda13], to match your driver)"
        ) from error
    if not cupy.is_available():
        raise BackendUnavailableError(
            "backend 'cupy' found the package CuPy but no usable NVIDIA driver and device: "
            "see what `nvidia-smi` says, or use the backend 'numpy'"
        )
    return cupy


def _find_module(name):
    if name == "numpy":
        return np
    if name == "cupy":
        return _import_cupy()
    raise ValueError(f"unknown backend {name!r}; known backends: {', '.join(BACKENDS)}")


class _ArrayModule:
    """Forwards every attribute to the array library in use (about 0.1 µs a look-up)."""

    def __init__(self, name):
        self._module = _find_module(name)

    def __getattr__(self, attribute):
        return getattr(self._module, attribute)


xp = _ArrayModule(os.environ.get("MINITRANSFORMER_BACKEND", "numpy"))


class use_backend:
    """Switch `xp` to the library `name`: at once and for good, or for the length of a `with` block.

    Raises ValueError for an unknown name and BackendUnavailableError where the library cannot run.
    """

    def __init__(self, name):
        self._previous = xp._module
        xp._module = _find_module(name)

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        xp._module = self._previous


def backend_name():
    """The name of the library in use, "numpy" or "cupy"."""
    return xp._module.__name__


def to_device(array):
    """`array` (from the host, or already there) as an array of the library in use."""
    return array if backend_name() == "numpy" and isinstance(array, np.ndarray) else xp.asarray(array)


def to_host(array):
    """`array` (of any backend) as a NumPy array; on a GPU this waits until it has been computed."""
    return array.get() if hasattr(array, "get") else np.asarray(array)


def make_generator(seed):
    """A random generator for dropout on the device in use. SFC64 is NumPy's fastest; CuPy has its own."""
    if backend_name() == "numpy":
        return np.random.Generator(np.random.SFC64(seed))
    return xp.random.default_rng(seed)


def random_uint16(rng, shape):
    """Independent integers from 0 to 65535, all equally likely: four from each 64-bit random number of `rng`."""
    size = math.prod(shape)
    words = rng.integers(0, 2**64 - 1, size=-(-size // 4), dtype=xp.uint64, endpoint=True)
    return words.view(xp.uint16)[:size].reshape(shape)


def add_rows(table, ids, rows):
    """table[ids[n]] += rows[n] for all n, where an id may come more than once.

    table (V, C), ids (N,) integers, rows (N, C); `table` is changed in place. The plain form is
    `xp.add.at(table, ids, rows)`. On the host we sort the ids, so that equal ones stand together, and sum each run,
    which is faster and adds in a fixed order.
    """
    if backend_name() != "numpy":
        xp.add.at(table, ids, rows)
        return
    order = np.argsort(ids, kind="stable")
    sorted_ids = ids[order]
    starts = np.flatnonzero(np.diff(sorted_ids, prepend=-1))
    table[sorted_ids[starts]] += np.add.reduceat(rows[order], starts, axis=0)

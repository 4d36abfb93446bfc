"""One name, `xp`, for two array libraries: NumPy on the CPU and CuPy on the GPU.

This is the only file that knows CuPy. All mathematics is written against `xp`, which looks up the current library
at each use, so `from minitransformer.backend import xp` stays right after a switch:

    use_backend("cupy")              # from here on, in this thread
    with use_backend("numpy"): ...   # only inside the block

`numpy` itself keeps meaning the host: data, checkpoints and initial weights are NumPy arrays, and cross over at
`to_device` and `to_host` alone.
"""

import contextlib
import contextvars
import functools
import importlib
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
    if hasattr(name, "ndarray"):
        return name
    if name == "numpy":
        return np
    if name == "cupy":
        return _import_cupy()
    raise ValueError(f"unknown backend {name!r}; known backends: {', '.join(BACKENDS)}")


_at_start = _find_module(os.environ.get("MINITRANSFORMER_BACKEND", "numpy"))
# the library in use. A context belongs to one thread; a Team hands a copy of the caller's to those that work for it
_in_use = contextvars.ContextVar("backend", default=_at_start)


class _ArrayModule:
    """Forwards every attribute to the array library in use (0.2 to 0.4 µs a look-up)."""

    def __getattr__(self, attribute):
        return getattr(_in_use.get(), attribute)


xp = _ArrayModule()


class use_backend:
    """Switch `xp` to the library `name` from here on, or for the length of a `with` block.

    It holds in this thread, and in those of a Team that works for it; other threads see nothing of it, and begin with
    what the environment variable MINITRANSFORMER_BACKEND says. `name` may also be an array module itself, such as the
    stand-in for CuPy that the tests use. Raises ValueError for an unknown name and BackendUnavailableError where the
    library cannot run.
    """

    def __init__(self, name):
        module = _find_module(name)
        self._before = _in_use.get()
        _in_use.set(module)

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        _in_use.set(self._before)


def backend_name():
    """The name of the library in use, "numpy" or "cupy", or that of the module that `use_backend` was given."""
    return _in_use.get().__name__


def to_device(array):
    """`array` (from the host, or already there) as an array of the library in use."""
    return array if backend_name() == "numpy" and isinstance(array, np.ndarray) else xp.asarray(array)


def to_host(array):
    """`array` (of any backend) as a NumPy array; on a GPU this waits until it has been computed."""
    return array.get() if hasattr(array, "get") else np.asarray(array)


KERNELS = "minitransformer.kernels"  # which stands above `functional` and so above this file: imported at first use
_use_kernels = contextvars.ContextVar("use_kernels", default=True)  # see `plain_formulas`


def fused_on_gpu(plain):
    """Above a plain function: with CuPy, a call goes to the function of the same name in `minitransformer.kernels`.

    That one returns NotImplemented for what it does not know, such as complex numbers. Then, and everywhere else, the
    plain formula that stands under the decorator is used. On NumPy this costs 0.1 µs a call.
    """

    @functools.wraps(plain)
    def dispatch(*args, **kwargs):
        module = _in_use.get()
        if module is np or module.__name__ != "cupy" or not _use_kernels.get():
            return plain(*args, **kwargs)
        result = getattr(importlib.import_module(KERNELS), plain.__name__)(*args, **kwargs)
        return plain(*args, **kwargs) if result is NotImplemented else result

    return dispatch


@contextlib.contextmanager
def plain_formulas():
    """Inside a `with` block the plain formulas are used on a GPU too, so that the kernels can be compared with them.

    As with `use_backend`, a block is of the thread that enters it and of its Team.
    """
    before = _use_kernels.get()
    _use_kernels.set(False)
    try:
        yield
    finally:
        _use_kernels.set(before)

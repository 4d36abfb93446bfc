"""One name, `xp`, for two array libraries: NumPy on the CPU and CuPy on the GPU.

All mathematics is written against `xp`, which looks up the current library at each use. So
`from minitransformer.backend import xp` remains valid after a switch:

    use_backend("cupy")              # from here on, in this thread
    with use_backend("numpy"): ...   # only inside the block

`numpy` itself always means the host. Data, checkpoints and initial weights are NumPy arrays; they cross to the device
and back only through `to_device` and `to_host`.
"""

import contextvars
import functools
import importlib
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

BACKENDS = ("numpy", "cupy")


class BackendUnavailableError(RuntimeError):
    """The chosen array library cannot be used here; the message says what is missing and how to get it."""


def _import_cupy() -> Any:
    try:
        cupy = importlib.import_module("cupy")
    except ImportError as error:
        raise BackendUnavailableError(
            "backend 'cupy' needs the package CuPy, which is not installed: "
            "pip install -e '.[cuda12]' (or [cuda13], to match your driver)"
        ) from error
    if not cupy.is_available():
        raise BackendUnavailableError(
            "backend 'cupy' found the package CuPy but no usable NVIDIA driver and device: "
            "see what `nvidia-smi` says, or use the backend 'numpy'"
        )
    return cupy


def _find_module(name: Any) -> Any:
    if hasattr(name, "ndarray"):
        return name
    if name == "numpy":
        return np
    if name == "cupy":
        return _import_cupy()
    raise ValueError(f"unknown backend {name!r}; known backends: {', '.join(BACKENDS)}")


_at_start = _find_module(os.environ.get("MINITRANSFORMER_BACKEND", "numpy"))
# the library in use. A context belongs to one thread; a ThreadTeam gives its threads a copy of the caller's context
_in_use: contextvars.ContextVar[Any] = contextvars.ContextVar("backend", default=_at_start)
_has_switched = False  # whether any thread has ever chosen another library than the one at the start


class _ArrayModule:
    """Forwards every attribute to the array library in use.

    A look-up takes 0.2 to 0.4 µs, and a training step makes hundreds. So as long as only one library has been in use,
    what was found is kept as an attribute of the object itself, where Python finds it without a call.
    """

    def __getattr__(self, attribute: str) -> Any:
        value = getattr(_in_use.get(), attribute)
        if not _has_switched:
            vars(self)[attribute] = value
            if _has_switched:  # in another thread, just now
                vars(self).pop(attribute, None)
        return value


if TYPE_CHECKING:
    import numpy as xp  # a type checker reads `xp.ndarray` as NumPy's
else:
    xp = _ArrayModule()


class use_backend:
    """Switch `xp` to the library `name`, from here on or for the length of a `with` block.

    The switch holds in this thread and in the threads of a ThreadTeam that works for it. Other threads do not see it;
    they start with the library that the environment variable MINITRANSFORMER_BACKEND names. `name` is "numpy", "cupy"
    or an array module itself, such as the stand-in for CuPy that the tests use.

    Raises ValueError for an unknown name and BackendUnavailableError if the library cannot run here.
    """

    def __init__(self, name: Any) -> None:
        global _has_switched
        module = _find_module(name)
        self._before = _in_use.get()
        if module is not _at_start:
            _has_switched = True  # from now on `xp` looks up every attribute at each use
            vars(xp).clear()
        _in_use.set(module)

    def __enter__(self) -> "use_backend":
        return self

    def __exit__(self, *exception: object) -> None:
        _in_use.set(self._before)


def backend_name() -> str:
    """The name of the library in use: "numpy", "cupy", or that of the module that `use_backend` was given."""
    return _in_use.get().__name__


def to_device(array: Any) -> "xp.ndarray":
    """`array`, from the host or the device, as an array of the library in use."""
    return array if backend_name() == "numpy" and isinstance(array, np.ndarray) else xp.asarray(array)


def to_host(array: Any) -> np.ndarray:
    """`array`, of any backend, as a NumPy array. On a GPU this waits until the array has been computed."""
    return array.get() if hasattr(array, "get") else np.asarray(array)


_use_kernels = contextvars.ContextVar("use_kernels", default=True)  # False: the plain formulas on a GPU too


def fused(plain: Callable[..., Any]) -> Callable[..., Any]:
    """Decorate a plain formula: with CuPy, its calls go to the function in `kernels` of that name, without its "_".

    The kernel takes the same arguments, and returns NotImplemented for what it does not support, such as complex
    numbers. Then, and with every other backend, the decorated formula runs. On NumPy this costs 0.2 µs per call.

    Decorate only formulas whose arguments have already been checked. A kernel trusts the shapes that it is given, so a
    check that came after the dispatch would be skipped on a GPU, and the kernel would read out of bounds.
    """
    name = plain.__name__.lstrip("_")

    @functools.wraps(plain)
    def dispatch(*args: Any, **kwargs: Any) -> Any:
        if backend_name() != "cupy" or not _use_kernels.get():
            return plain(*args, **kwargs)
        result = getattr(importlib.import_module("minitransformer.kernels"), name)(*args, **kwargs)
        return plain(*args, **kwargs) if result is NotImplemented else result

    return dispatch

"""Sends the calls of a plain formula to its fused kernel when the backend is CuPy.

Decorate only formulas whose arguments have already been checked. A kernel trusts the shapes that it is given, so a
check that came after the dispatch would be skipped on a GPU, and the kernel would read out of bounds.
"""

import contextlib
import contextvars
import functools
from collections.abc import Callable, Iterator
from typing import Any

from minitransformer.backend import backend_name

_use_kernels = contextvars.ContextVar("use_kernels", default=True)  # see `plain_formulas`


def fused(kernel: Callable[..., Any]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorate a plain formula: with CuPy, its calls go to `kernel`, which takes the same arguments.

    The kernel returns NotImplemented for what it does not support, such as complex numbers. Then, and with every other
    backend, the decorated formula runs. On NumPy the decorator costs 0.2 µs per call.
    """

    def decorate(plain: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(plain)
        def dispatch(*args: Any, **kwargs: Any) -> Any:
            if backend_name() != "cupy" or not _use_kernels.get():
                return plain(*args, **kwargs)
            result = kernel(*args, **kwargs)
            return plain(*args, **kwargs) if result is NotImplemented else result

        return dispatch

    return decorate


@contextlib.contextmanager
def plain_formulas() -> Iterator[None]:
    """Inside a `with` block the plain formulas run on a GPU too, so that the kernels can be compared with them.

    As with `use_backend`, the block holds in the thread that enters it and in its ThreadTeam.
    """
    before = _use_kernels.get()
    _use_kernels.set(False)
    try:
        yield
    finally:
        _use_kernels.set(before)

"""From a kernel's name to its launch: where its source is, how it is compiled, how many threads it gets.

CuPy compiles the source at the first use, once for float32 and once for float64, and keeps the result on disk.
"""

import functools
from pathlib import Path
from typing import Any

import numpy as np

from minitransformer.backend import xp

FILES = (
    "rows.cuh",  # first: the others use it
    "softmax.cu",
    "layer_norm.cu",
    "cross_entropy.cu",
    "dropout.cu",
    "activations.cu",
    "scatter.cu",
    "adam.cu",
)
C_TYPES = {np.dtype(np.float32): "float", np.dtype(np.float64): "double"}
NULL = 0  # the null pointer: there is no such array

WARP_ROWS, BLOCK = (32, 8), (256, 1)  # threads per block for short and for long rows, as in rows.cuh
SHORT = 1024  # numbers in the longest row that one warp takes alone
COLUMNS, PARTS = 32, 8  # of a block that sums columns


def source() -> str:
    """The CUDA source of all kernels as one text. Compiler errors still name the file they are in."""
    texts = (Path(__file__).with_name(name).read_text("utf-8") for name in FILES)
    return "".join(f'#line 1 "{name}"\n{text}' for name, text in zip(FILES, texts, strict=True))


def options(dtype: np.dtype[Any]) -> tuple[str, ...]:
    """The compiler's options for float32 or float64."""
    return ("-std=c++17", f"-DREAL={C_TYPES[dtype]}")


@functools.cache
def _module(dtype: np.dtype[Any]) -> Any:
    return xp.RawModule(code=source(), options=options(dtype))  # type: ignore[attr-defined]


@functools.cache
def _kernel(name: str, dtype: np.dtype[Any]) -> Any:
    return _module(dtype).get_function(name)


def common_real(*arrays: xp.ndarray) -> np.dtype[Any] | None:
    """The common dtype of all `arrays` if it is float32 or float64, in which the kernels compute; else None."""
    dtype = arrays[0].dtype
    return dtype if dtype in C_TYPES and all(array.dtype == dtype for array in arrays) else None


def launch(name: str, dtype: np.dtype[Any], grid: tuple[int, ...], block: tuple[int, ...], *args: Any) -> None:
    """Start the kernel `name` on `grid` blocks of `block` threads, unless the grid is empty; nothing waits.

    Each argument must have the type that the kernel declares: arrays for pointers, Python integers for `long long`, and
    `dtype.type(number)` for `real`.
    """
    if 0 not in grid:
        _kernel(name, dtype)(grid, block, args)


def launch_rows(name: str, dtype: np.dtype[Any], rows: int, length: int, *args: Any) -> None:
    """Start a kernel that gives each of `rows` rows of `length` numbers to one team of threads."""
    block = WARP_ROWS if length <= SHORT else BLOCK
    launch(name, dtype, (ceil_div(rows, block[1]),), block, *args)


def launch_entries(name: str, dtype: np.dtype[Any], size: int, *args: Any) -> None:
    """Start a kernel that gives each of `size` numbers to one thread."""
    launch(name, dtype, (ceil_div(size, BLOCK[0]),), BLOCK, *args)


def ceil_div(a: int, b: int) -> int:
    """a / b, rounded up: the number of portions of size b that hold a."""
    return -(-a // b)

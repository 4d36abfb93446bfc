"""From a kernel's name to its launch: where its source stands, how it is compiled, how many threads it gets.

CuPy compiles the source at first use, once for float32 and once for float64, and keeps the result on disk.
"""

import functools
from pathlib import Path

from minitransformer.backend import xp

FILES = (
    "rows.cuh",  # first: the others use it
    "softmax.cu",
    "layer_norm.cu",
    "cross_entropy.cu",
    "dropout.cu",
    "activations.cu",
    "embedding.cu",
    "adam.cu",
)
C_TYPES = {"float32": "float", "float64": "double"}
NULL = 0  # in place of an array that is not there

WARP_ROWS, BLOCK = (32, 8), (256, 1)  # the teams of threads for short and for long rows, as rows.cuh has them
SHORT = 1024  # numbers in the longest row that one warp takes alone
COLUMNS, PARTS = 32, 8  # of a block that sums columns


def source():
    """The CUDA source of all kernels as one text, in which errors are still reported under each file's name."""
    texts = (Path(__file__).with_name(name).read_text("utf-8") for name in FILES)
    return "".join(f'#line 1 "{name}"\n{text}' for name, text in zip(FILES, texts, strict=True))


def options(dtype_name):
    """What the compiler is told, for "float32" or "float64"."""
    return ("-std=c++17", f"-DREAL={C_TYPES[dtype_name]}")


@functools.cache
def _module(dtype_name):
    return xp.RawModule(code=source(), options=options(dtype_name))


@functools.cache
def _kernel(name, dtype_name):
    return _module(dtype_name).get_function(name)


def common_real(*arrays):
    """The dtype that all `arrays` have, if it is float32 or float64, which is what kernels compute in; else None."""
    dtype = arrays[0].dtype
    return dtype if dtype.name in C_TYPES and all(array.dtype == dtype for array in arrays) else None


def launch(name, dtype, grid, block, *args):
    """Start the kernel `name` on `grid` blocks of `block` threads, unless there is nothing to do; nothing waits.

    Each argument must have the type that the kernel declares: arrays for pointers, Python's integers for `long long`,
    and `dtype.type(number)` for `real`.
    """
    if 0 not in grid:
        _kernel(name, dtype.name)(grid, block, args)


def launch_rows(name, dtype, rows, length, *args):
    """Start a kernel that gives each of `rows` rows of `length` numbers to one team of threads."""
    block = WARP_ROWS if length <= SHORT else BLOCK
    launch(name, dtype, (ceil_div(rows, block[1]),), block, *args)


def launch_entries(name, dtype, size, *args):
    """Start a kernel that gives each of `size` numbers to one thread."""
    launch(name, dtype, (ceil_div(size, BLOCK[0]),), BLOCK, *args)


def ceil_div(a, b):
    """a / b, rounded up: how many portions of b make at least a."""
    return -(-a // b)

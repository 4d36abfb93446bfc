"""A stand-in for CuPy that runs the CUDA source of our kernels on the CPU, compiled by g++ with cuda_on_cpu.h.

`CudaOnCpu` is the stand-in `strict`, so that launchers have CuPy's names and nothing else, with `RawModule` added. A
launch is watched more closely than on a GPU:

* the arguments must have the types that the kernel declares;
* each array stands between guard bytes (huge numbers, to a reader), which must be untouched afterwards;
* what is declared const must be untouched, too;
* everything runs twice, with threads and blocks in opposite orders, and must give the same bits;
* `empty` hands out NaN, so that what a kernel leaves out is seen;
* a float that becomes a double, which most GPUs treat 32 to 64 times more slowly, does not compile: `1.0` is enough.
"""

import ctypes
import itertools
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np

from minitransformer.kernels import launch
from tests.strict.strict import strict

HEADER = Path(__file__).with_name("cuda_on_cpu.h")
COMPILER = shutil.which("g++")
KERNEL = re.compile(r'extern "C" __global__ void (\w+)\((.*?)\)', re.DOTALL)
REAL_TYPES = {"-DREAL=float": np.dtype(np.float32), "-DREAL=double": np.dtype(np.float64)}
WARNINGS = ("-Wall", "-Werror", "-Wdouble-promotion", "-Wno-sign-compare", "-Wno-unused-function")
GUARD = 1024  # bytes on each side of an array
COMPLAINTS = {1: "its block is not a number of whole warps", 2: "threads wait for others that never come"}


def forget_kernels():
    """Compile again when a kernel is used next: what was compiled belongs to another library."""
    launch._module.cache_clear()
    launch._kernel.cache_clear()


def kernels_in(source):
    """{name: the types of its parameters} for every kernel in a CUDA source."""
    return {
        name: [" ".join(parameter.split()[:-1]) for parameter in parameters.split(",")]
        for name, parameters in KERNEL.findall(source)
    }


class CudaOnCpu:
    """`strict`, with CuPy's name and RawModule."""

    __name__ = "cupy"

    def __init__(self, folder):
        self._folder = folder
        self._libraries = {}
        self.launched = set()  # the names of all kernels that ran

    def __getattr__(self, name):
        return getattr(strict, name)

    def empty(self, *args, **kwargs):
        return _poisoned(strict.empty(*args, **kwargs))

    def empty_like(self, *args, **kwargs):
        return _poisoned(strict.empty_like(*args, **kwargs))

    def RawModule(self, *, code, options):
        key = (code, options)
        if key not in self._libraries:
            self._libraries[key] = _compile(self._folder / f"kernels_{len(self._libraries)}", code, options)
        return Module(self, self._libraries[key], code, options)


def _poisoned(array):
    array._host.reshape(-1).view(np.uint8).fill(0xFF)
    return array


def _compile(path, code, options):
    entries = (
        f'extern "C" int launch_{name}(const unsigned* grid, const unsigned* block, void** arguments, bool backwards) '
        f"{{ return on_cpu::launch({name}, grid, block, arguments, backwards); }}\n"
        for name in kernels_in(code)
    )
    text = f'#include "{HEADER}"\nnamespace {{\n{code}\n}}\n#line 1 "entries"\n{"".join(entries)}'
    path.with_suffix(".cpp").write_text(text, "utf-8")
    # some g++ let longjmp abort by default where it changes the stack, as the fibers of cuda_on_cpu.h do
    command = [COMPILER, "-O1", "-U_FORTIFY_SOURCE", *WARNINGS, "-shared", "-fPIC", *options]
    subprocess.run([*command, "-o", path.with_suffix(".so"), path.with_suffix(".cpp")], check=True)
    return ctypes.CDLL(str(path.with_suffix(".so")))


class Module:
    """A compiled source, as CuPy's RawModule."""

    def __init__(self, cuda, library, code, options):
        self._cuda, self._library = cuda, library
        self._kernels = kernels_in(code)
        self._real = REAL_TYPES[next(option for option in options if option in REAL_TYPES)]

    def get_function(self, name):
        return Kernel(self._cuda, name, getattr(self._library, f"launch_{name}"), self._kernels[name], self._real)


class Kernel:
    """A kernel, to be called with a grid, a block and the arguments, as CuPy's RawKernel."""

    def __init__(self, cuda, name, entry, types, real):
        self._cuda, self.name, self._entry, self._types = cuda, name, entry, types
        self._numbers = {"real": real, "bool": np.dtype(bool)}
        self._numbers |= {"long long": np.dtype(np.int64), "unsigned short": np.dtype(np.uint16)}

    def __call__(self, grid, block, args):
        assert len(args) == len(self._types), f"{self.name} takes {len(self._types)} arguments, got {len(args)}"
        assert not any(isinstance(argument, np.ndarray) for argument in args), f"{self.name} got an array of the host"
        args = [argument._host if isinstance(argument, strict.ndarray) else argument for argument in args]
        for place, (argument, type_) in enumerate(zip(args, self._types, strict=True)):
            self._check_type(place, argument, type_)
        assert 0 not in (*grid, *block), f"{self.name}: a GPU refuses an empty grid"
        memories = self._memories(args)
        runs = [self._run(grid, block, args, memories, backwards) for backwards in (False, True)]
        for memory, forwards, backwards in zip(memories.values(), *runs, strict=True):
            assert forwards == backwards, f"{self.name} gives other bits when its threads run in another order"
            memory.write_back(forwards)
        self._cuda.launched.add(self.name)

    def _check_type(self, place, argument, type_):
        complaint = f"argument {place} of {self.name} is declared {type_}, got {type(argument)}"
        if type_.endswith("*"):
            dtype = self._numbers[type_.removeprefix("const ").removesuffix("*")]
            is_null = type(argument) is int and argument == 0
            assert is_null or (isinstance(argument, np.ndarray) and argument.dtype == dtype), complaint
        elif type_ == "long long":
            assert type(argument) is int, complaint
        else:
            assert type(argument) is self._numbers[type_].type, complaint

    def _memories(self, args):
        """{first address: Memory} for all arrays, of which several may be the same."""
        memories = {}
        for argument, type_ in zip(args, self._types, strict=True):
            if isinstance(argument, np.ndarray):
                is_const = type_.startswith("const ")
                guard = 0x7F - len(memories) if argument.dtype.kind == "f" else 0xFF  # no two are alike: copies show
                memory = memories.setdefault(_bounds(argument)[0], Memory(self.name, argument, guard))
                assert memory.size == _bounds(argument)[1] - _bounds(argument)[0], "arrays overlap in part"
                assert is_const or argument.flags.writeable, f"{self.name} may not write to its argument"
                memory.is_const &= is_const
        for one, other in itertools.pairwise(sorted(memories)):
            assert one + memories[one].size <= other, "arrays overlap in part"
        return memories

    def _run(self, grid, block, args, memories, backwards):
        """The bytes of each memory after one run."""
        copies = {address: memory.guarded() for address, memory in memories.items()}
        values = []
        for argument, type_ in zip(args, self._types, strict=True):
            if isinstance(argument, np.ndarray):
                low, first = _bounds(argument)[0], argument.ctypes.data
                values.append(ctypes.c_void_p(ctypes.addressof(copies[low]) + GUARD + first - low))
            elif type_.endswith("*"):
                values.append(ctypes.c_void_p(None))
            else:
                values.append(np.ctypeslib.as_ctypes_type(self._numbers[type_])(argument))
        pointers = (ctypes.c_void_p * len(values))(*(ctypes.addressof(value) for value in values))
        sizes = [(ctypes.c_uint * 3)(*(*size, 1, 1)[:3]) for size in (grid, block)]
        status = self._entry(*sizes, pointers, ctypes.c_bool(backwards))
        assert status == 0, f"{self.name}: {COMPLAINTS[status]}"
        return [memories[address].checked(copy) for address, copy in copies.items()]


def _bounds(array):
    """The address of the first byte of an array, and that after its last one."""
    ends = [(length - 1) * stride for length, stride in zip(array.shape, array.strides, strict=True)]
    first = array.ctypes.data
    return first + sum(min(end, 0) for end in ends), first + sum(max(end, 0) for end in ends) + array.itemsize


class Memory:
    """The bytes that an array occupies."""

    def __init__(self, kernel_name, array, guard):
        self._kernel_name, self._guard = kernel_name, bytes([guard]) * GUARD
        self._array = array  # which keeps the memory alive
        self._address, end = _bounds(array)
        self.size = end - self._address
        self.is_const = True

    def guarded(self):
        """A copy between two guards."""
        return ctypes.create_string_buffer(self._guard + ctypes.string_at(self._address, self.size) + self._guard)

    def checked(self, copy):
        """The bytes of such a copy after a run."""
        left, inside, right = copy.raw[:GUARD], copy.raw[GUARD : GUARD + self.size], copy.raw[GUARD + self.size : -1]
        assert left == right == self._guard, f"{self._kernel_name} writes beside an array"
        if self.is_const:
            assert inside == ctypes.string_at(self._address, self.size), f"{self._kernel_name} writes to a const array"
        return inside

    def write_back(self, content):
        """Bring what the kernel wrote to the array."""
        if not self.is_const:
            ctypes.memmove(self._address, content, self.size)

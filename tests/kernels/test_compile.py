"""The CUDA source compiles: every kernel, for float32 and float64, without a warning.

Only the compiler of NVIDIA can tell; the tests beside this one show that what it compiles is right.
"""

import configparser
import fnmatch
import functools
from pathlib import Path

import numpy as np
import pytest

from minitransformer.kernels import launch
from tests.kernels import nvrtc
from tests.kernels.cuda_on_cpu import kernels_in

LIBRARY = nvrtc.load()
needs_nvrtc = pytest.mark.skipif(LIBRARY is None, reason="NVRTC is not here: pip install nvidia-cuda-nvrtc-cu12")


@functools.cache
def compiled(dtype_name):
    return nvrtc.compile_to_ptx(LIBRARY, launch.source(), launch.options(np.dtype(dtype_name)))


@needs_nvrtc
@pytest.mark.parametrize("dtype_name", ["float32", "float64"])
def test_every_kernel_compiles_without_a_warning(dtype_name):
    ptx, log = compiled(dtype_name)
    assert log == ""
    missing = [name for name in kernels_in(launch.source()) if f".entry {name}(" not in ptx]
    assert missing == []


@needs_nvrtc
def test_float32_kernels_compute_nothing_in_float64():
    # which most GPUs do 32 to 64 times more slowly: one literal such as 1.0 is enough
    assert ".f64" in compiled("float64")[0]
    assert ".f64" not in compiled("float32")[0]


@needs_nvrtc
def test_compiler_names_the_file_and_line_of_an_error():
    name = launch.FILES[-1]
    lines = Path(launch.__file__).with_name(name).read_text("utf-8").count("\n")
    ptx, log = nvrtc.compile_to_ptx(LIBRARY, launch.source() + "oops", launch.options(np.dtype(np.float32)))
    assert ptx is None
    assert f"{name}({lines + 1})" in log


def test_a_built_package_carries_every_file_of_the_source():
    setup = configparser.ConfigParser()
    setup.read(Path(__file__).parents[2] / "setup.cfg")
    patterns = setup["options.package_data"]["minitransformer.kernels"].split()
    assert [name for name in launch.FILES if not any(fnmatch.fnmatch(name, pattern) for pattern in patterns)] == []


def test_every_cuda_file_is_part_of_the_source():
    assert {path.name for path in Path(launch.__file__).parent.glob("*.cu*")} == set(launch.FILES)

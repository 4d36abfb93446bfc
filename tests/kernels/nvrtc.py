"""NVIDIA's run-time compiler, which CuPy uses too, through its C interface. It needs no GPU and no driver."""

import ctypes
import ctypes.util
import importlib.util
import os
from pathlib import Path

ARCHITECTURE = "compute_75"  # the oldest that CUDA 12 and 13 both know


def load():
    """The library, from a pip package (nvidia-cuda-nvrtc-cu12), the CUDA toolkit or the system; else None."""
    for path in _candidates():
        try:
            return ctypes.CDLL(path)
        except OSError:
            continue
    return None


def _candidates():
    packages = importlib.util.find_spec("nvidia")
    folders = [Path(place) for place in packages.submodule_search_locations or ()] if packages else []
    found = [path for folder in folders for path in sorted(folder.glob("*/lib/libnvrtc.so*"))]
    found += sorted(Path(os.environ.get("CUDA_PATH", "/usr/local/cuda")).glob("lib64/libnvrtc.so*"))
    return [*map(str, found), *filter(None, [ctypes.util.find_library("nvrtc")])]


def compile_to_ptx(library, source, options):
    """(the PTX, or None where it does not compile; what the compiler has to say) for a CUDA source."""
    program = ctypes.c_void_p()
    library.nvrtcCreateProgram(ctypes.byref(program), source.encode(), b"kernels.cu", 0, None, None)
    options = [option.encode() for option in (*options, f"--gpu-architecture={ARCHITECTURE}")]
    status = library.nvrtcCompileProgram(program, len(options), (ctypes.c_char_p * len(options))(*options))
    log = _text(program, library.nvrtcGetProgramLogSize, library.nvrtcGetProgramLog)
    ptx = None if status else _text(program, library.nvrtcGetPTXSize, library.nvrtcGetPTX)
    library.nvrtcDestroyProgram(ctypes.byref(program))
    return ptx, log


def _text(program, get_size, get):
    size = ctypes.c_size_t()
    get_size(program, ctypes.byref(size))
    text = ctypes.create_string_buffer(size.value)
    get(program, text)
    return text.value.decode()

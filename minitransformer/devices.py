"""What there is to compute on: the CPU, and the GPUs that CuPy finds."""

import os
import platform
from pathlib import Path

import numpy as np

from minitransformer.backend import BackendUnavailableError, backend_name, use_backend, xp
from minitransformer.process import num_threads


def list_devices():
    """[{"backend", "usable", "name", ...}] for both backends; one that is not usable has the reason as its name."""
    cpu = {"backend": "numpy", "usable": True, **describe_cpu()}
    try:
        with use_backend("cupy"):
            count = xp.cuda.runtime.getDeviceCount()
            gpus = [{"backend": "cupy", "usable": True, **describe_gpu(i)} for i in range(count)]
    except BackendUnavailableError as error:
        gpus = [{"backend": "cupy", "usable": False, "name": str(error)}]
    return [cpu, *gpus]


def describe_device():
    """The device of the backend in use -> {what: value}."""
    return describe_gpu(xp.cuda.Device().id) if backend_name() == "cupy" else describe_cpu()


def describe_cpu():
    """The processor, its number of cores and what NumPy does with them."""
    return {
        "name": processor_name(),
        "cores": os.cpu_count(),
        "threads of a matrix product": num_threads(),
        "NumPy": np.__version__,
    }


def describe_gpu(index):
    """One GPU: its name, memory in bytes, and versions. Only inside `use_backend("cupy")`."""
    runtime = xp.cuda.runtime
    properties = runtime.getDeviceProperties(index)
    return {
        "name": properties["name"].decode(),
        "memory": properties["totalGlobalMem"],
        "compute capability": f"{properties['major']}.{properties['minor']}",
        "CUDA driver": version_of(runtime.driverGetVersion()),
        "CUDA runtime": version_of(runtime.runtimeGetVersion()),
        "CuPy": xp.__version__,
    }


def version_of(number):
    """12040 -> "12.4", as CUDA writes its versions."""
    return f"{number // 1000}.{number % 1000 // 10}"


def processor_name():
    """The model of the processor, as Linux names it, or the architecture."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf8").splitlines()
        return next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()

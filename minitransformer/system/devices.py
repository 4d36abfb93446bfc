"""The available devices, which are the CPU and the GPUs that CuPy finds, and how much memory is free on them."""

import importlib.metadata
import os
import platform
from pathlib import Path
from typing import Any

import numpy as np

from minitransformer.backend import BackendUnavailableError, backend_name, use_backend, xp
from minitransformer.system.process import blas_threads

cupy: Any = xp  # used only where the backend is CuPy: a type checker takes xp for NumPy, which has no `cuda`

# control groups, with which containers and job schedulers limit memory, in version 2 and in version 1: their folder,
# the files that hold the limit and the usage, and the line in memory.stat with what would be given back on demand
GROUPS = (
    ("sys/fs/cgroup", "memory.max", "memory.current", "inactive_file"),
    ("sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
)


def list_devices() -> list[dict[str, Any]]:
    """[{"backend", "usable", "name", ...}] for both backends; for an unusable one, the name is the reason."""
    cpu = {"backend": "numpy", "usable": True, **describe_cpu(), "several processes": describe_mpi()}
    try:
        with use_backend("cupy"):
            count = cupy.cuda.runtime.getDeviceCount()
            gpus: list[dict[str, Any]] = [{"backend": "cupy", "usable": True, **describe_gpu(i)} for i in range(count)]
    except BackendUnavailableError as error:
        gpus = [{"backend": "cupy", "usable": False, "name": str(error)}]
    return [cpu, *gpus]


def describe_device() -> dict[str, Any]:
    """The device of the backend in use -> {property: value}."""
    return describe_gpu(cupy.cuda.Device().id) if backend_name() == "cupy" else describe_cpu()


def describe_cpu() -> dict[str, Any]:
    """The processor, its number of cores, how many of them NumPy uses, and NumPy's version."""
    return {
        "name": processor_name(),
        "cores": os.cpu_count(),
        "threads of a matrix product": blas_threads(),
        "NumPy": np.__version__,
    }


def describe_mpi() -> str:
    """What several processes that train together are started with, or how to install it."""
    try:
        return f"with mpiexec and mpi4py {importlib.metadata.version('mpi4py')}"
    except importlib.metadata.PackageNotFoundError:
        return "after pip install -e '.[mpi]'"


def describe_gpu(index: int) -> dict[str, Any]:
    """One GPU: its name, memory in bytes, and versions. Only inside `use_backend("cupy")`."""
    runtime = cupy.cuda.runtime
    properties = runtime.getDeviceProperties(index)
    return {
        "name": properties["name"].decode(),
        "memory": properties["totalGlobalMem"],
        "compute capability": f"{properties['major']}.{properties['minor']}",
        "CUDA driver": version_of(runtime.driverGetVersion()),
        "CUDA runtime": version_of(runtime.runtimeGetVersion()),
        "CuPy": cupy.__version__,
    }


def use_gpu(number: int) -> None:
    """Compute on this GPU from now on; more processes than GPUs share them. Only with the backend CuPy."""
    cupy.cuda.Device(number % cupy.cuda.runtime.getDeviceCount()).use()


def version_of(number: int) -> str:
    """CUDA's encoding of a version as text: 12040 -> "12.4"."""
    return f"{number // 1000}.{number % 1000 // 10}"


def processor_name() -> str:
    """The name of the processor's model if Linux tells it, otherwise the architecture."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf8").splitlines()
        return next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


def free_memory() -> int | None:
    """The number of bytes that arrays can still use on the device in use, or None if that is unknown.

    On Linux this is the smallest of three numbers: what the system reports as available, what the control groups of the
    process have left, and what a limit on its address space (`ulimit -v`) leaves.
    """
    if backend_name() == "cupy":
        free, _ = cupy.cuda.runtime.memGetInfo()
        return free + cupy.get_default_memory_pool().free_bytes()
    answers = (available_on_linux(), *left_in_groups(), left_of_address_space())
    return min((answer for answer in answers if answer is not None), default=None)


def available_on_linux(root: Path = Path("/")) -> int | None:
    """The bytes that Linux can give to a program without swapping, or None."""
    try:
        lines = (root / "proc/meminfo").read_text(encoding="utf8").splitlines()
        return next(1024 * int(line.split()[1]) for line in lines if line.startswith("MemAvailable:"))
    except (OSError, StopIteration):
        return None


def left_in_groups(root: Path = Path("/")) -> list[int]:
    """The bytes left in each control group of this process, up to that of the whole container."""
    try:
        lines = (root / "proc/self/cgroup").read_text(encoding="utf8").splitlines()
    except OSError:
        return []
    own = {controllers: path.strip("/") for _, controllers, path in (line.split(":", 2) for line in lines)}
    left = []
    for (place, *files), path in zip(GROUPS, (own.get(""), own.get("memory")), strict=True):
        if path is not None:
            folders = [root / place / path, *(root / place / path).parents]
            # a container may see its own group at the top, under a name that differs from the one outside
            left += [_left_in(folder, *files) for folder in folders if (root / place) in (folder, *folder.parents)]
    return [bytes_left for bytes_left in left if bytes_left is not None]


def _left_in(folder: Path, limit: str, taken: str, given_back: str) -> int | None:
    """The limit minus the usage that would not be given back; None if there is no limit or no such folder."""
    try:
        bound, now = ((folder / name).read_text(encoding="utf8").strip() for name in (limit, taken))
        stat = dict(line.split() for line in (folder / "memory.stat").read_text(encoding="utf8").splitlines())
    except OSError:
        return None
    return None if bound == "max" else max(0, int(bound) - int(now) + int(stat.get(given_back, 0)))


def left_of_address_space(root: Path = Path("/")) -> int | None:
    """The bytes that `ulimit -v` leaves to this process, or None."""
    try:
        import resource  # not on Windows

        bound, _ = resource.getrlimit(resource.RLIMIT_AS)
        pages = int((root / "proc/self/statm").read_text(encoding="utf8").split()[0])
    except (ImportError, OSError):
        return None
    return None if bound == resource.RLIM_INFINITY else max(0, bound - pages * resource.getpagesize())

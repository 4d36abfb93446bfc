"""What there is to compute on: the CPU, and the GPUs that CuPy finds; and how much memory is free there."""

import os
import platform
from pathlib import Path

import numpy as np

from minitransformer.backend import BackendUnavailableError, backend_name, use_backend, xp
from minitransformer.process import num_threads

# control groups, by which containers and job schedulers limit memory, in version 2 and in version 1: where they are,
# the files of the limit and of what is taken, and the line in memory.stat of what would be given back
GROUPS = (
    ("sys/fs/cgroup", "memory.max", "memory.current", "inactive_file"),
    ("sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
)


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


def free_memory():
    """Bytes that arrays can still take on the device in use, or None where that cannot be told.

    On Linux the least of what the system says is available, what the process's control groups have left, and what a
    limit of its address space (`ulimit -v`) leaves.
    """
    if backend_name() == "cupy":
        free, _ = xp.cuda.runtime.memGetInfo()
        return free + xp.get_default_memory_pool().free_bytes()
    answers = (available_on_linux(), *left_in_groups(), left_of_address_space())
    return min((answer for answer in answers if answer is not None), default=None)


def available_on_linux(root=Path("/")):
    """What Linux could give to a program without swapping, or None."""
    try:
        lines = (root / "proc/meminfo").read_text(encoding="utf8").splitlines()
        return next(1024 * int(line.split()[1]) for line in lines if line.startswith("MemAvailable:"))
    except (OSError, StopIteration):
        return None


def left_in_groups(root=Path("/")):
    """What is left to each control group of this process, up to the one of the whole container -> list of bytes."""
    try:
        lines = (root / "proc/self/cgroup").read_text(encoding="utf8").splitlines()
    except OSError:
        return []
    own = {controllers: path.strip("/") for _, controllers, path in (line.split(":", 2) for line in lines)}
    left = []
    for (place, *files), path in zip(GROUPS, (own.get(""), own.get("memory")), strict=True):
        if path is not None:
            folders = [root / place / path, *(root / place / path).parents]
            # a container may see its own group at the top, under another name than it has outside
            left += [_left_in(folder, *files) for folder in folders if (root / place) in (folder, *folder.parents)]
    return [bytes_left for bytes_left in left if bytes_left is not None]


def _left_in(folder, limit, taken, given_back):
    """The limit, less what is taken for good; None where there is no limit or no such folder."""
    try:
        bound, now = ((folder / name).read_text(encoding="utf8").strip() for name in (limit, taken))
        stat = dict(line.split() for line in (folder / "memory.stat").read_text(encoding="utf8").splitlines())
    except OSError:
        return None
    return None if bound == "max" else max(0, int(bound) - int(now) + int(stat.get(given_back, 0)))


def left_of_address_space(root=Path("/")):
    """What `ulimit -v` leaves to this process, or None."""
    try:
        import resource  # not on Windows

        bound, _ = resource.getrlimit(resource.RLIMIT_AS)
        pages = int((root / "proc/self/statm").read_text(encoding="utf8").split()[0])
    except (ImportError, OSError):
        return None
    return None if bound == resource.RLIM_INFINITY else max(0, bound - pages * resource.getpagesize())

"""Timing a training step on a GPU, by events that the device records, against PyTorch eager on the same device.

A GPU computes asynchronously, so a clock on the host would stop too early or measure the wait. An event is queued like
a kernel, and the device records when it reached it.
"""

import itertools
import json
import statistics
import sys
from collections.abc import Callable, Sequence
from typing import Any

from experiments.measuring import environment
from experiments.measuring.steps import SIZES, Size, numpy_step, pytorch_step
from experiments.measuring.timing import seconds_of
from minitransformer.backend import backend_name, xp
from minitransformer.system.children import last_line

DEVICE_SIZES = {**SIZES, "base": Size("base", 37000, 512, 8, 2048, 6, batch=32, length=64)}
WARM_UP, TURNS, CALLS = 5, 6, 10
DROPOUT = 0.1
Clock = Callable[[Callable[[], Any], int], list[float]]  # (function, count) -> seconds of each call


def measure_steps(names: Sequence[str], tf32: bool) -> list[dict[str, Any]]:
    """Our step and PyTorch's on one GPU, float32, dropout 0.1 -> [{"size", "tf32", "ours", "pytorch", "ratio"}].

    Times are in seconds. Runs in a process of its own, because CuPy reads CUPY_TF32 when it starts. PyTorch is timed
    if it is installed and can use the device. Raises RuntimeError if the process fails.
    """
    command = [sys.executable, "-m", "experiments.measuring.device_steps", json.dumps([names, tf32])]
    switches = environment(CUPY_TF32=str(int(tf32)), MINITRANSFORMER_BACKEND=backend_name())
    return json.loads(last_line(command, env=switches))


def measure_here(names: Sequence[str], tf32: bool) -> list[dict[str, Any]]:
    """As `measure_steps`, in this process."""
    rows: list[dict[str, Any]] = []
    for name in names:
        size = DEVICE_SIZES[name]
        calls: dict[str, tuple[Callable[[], Any], Clock]] = {"ours": (numpy_step(size, DROPOUT), clock())}
        if pytorch_sees_device():
            import torch

            torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = tf32
            calls["pytorch"] = (pytorch_step(size, DROPOUT, threads=1, device=torch_device()), pytorch_clock)
        times: dict[str, list[float]] = {key: [] for key in calls}
        for turn in range(TURNS + 1):
            for key, (call, measure) in calls.items():
                seconds = measure(call, CALLS if turn else WARM_UP)
                times[key] += seconds if turn else []
        row: dict[str, Any] = {"size": name, "tf32": tf32}
        row |= {key: statistics.median(values) for key, values in times.items()}
        rows.append({**row, "ratio": row["pytorch"] / row["ours"] if "pytorch" in row else None})
    return rows


def clock() -> Clock:
    """The clock of the backend in use."""
    return cupy_clock if backend_name() == "cupy" else host_clock


def cupy_clock(call: Callable[[], Any], count: int) -> list[float]:
    """The seconds between events of CuPy's stream."""
    events = [xp.cuda.Event() for _ in range(count + 1)]  # type: ignore[attr-defined]  # CuPy's
    events[0].record()
    for event in events[1:]:
        call()
        event.record()
    events[-1].synchronize()
    milliseconds = xp.cuda.get_elapsed_time  # type: ignore[attr-defined]
    return [milliseconds(a, b) / 1e3 for a, b in itertools.pairwise(events)]


def pytorch_clock(call: Callable[[], Any], count: int) -> list[float]:
    """The seconds between events of PyTorch's stream, or by the host's clock without a GPU."""
    import torch

    if not torch.cuda.is_available():
        return host_clock(call, count)
    events = [torch.cuda.Event(enable_timing=True) for _ in range(count + 1)]
    events[0].record()
    for event in events[1:]:
        call()
        event.record()
    torch.cuda.synchronize()
    return [a.elapsed_time(b) / 1e3 for a, b in itertools.pairwise(events)]


def host_clock(call: Callable[[], Any], count: int) -> list[float]:
    """The seconds by the host's clock, for devices that compute synchronously."""
    return [seconds_of(call) for _ in range(count)]


def torch_device() -> str:
    """The PyTorch device that matches the backend in use."""
    return "cuda" if backend_name() == "cupy" else "cpu"


def pytorch_sees_device() -> bool:
    """Whether PyTorch is installed and can use the same device."""
    try:
        import torch
    except ImportError:
        return False
    return backend_name() != "cupy" or torch.cuda.is_available()


if __name__ == "__main__":
    print(json.dumps(measure_here(*json.loads(sys.argv[1]))))

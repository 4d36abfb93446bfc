"""Measuring time and memory on a machine that is not idle.

What is compared takes turns of a third of a second in one process, so that a slow moment of the machine slows all, and
the medians of all calls are compared.
"""

import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

from experiments.measuring import environment
from experiments.measuring.steps import Size
from minitransformer.system.children import last_line

WARM_UP = 3  # calls of each function that are not counted
LEAST = 3  # turns of each function, however long they take
TURN = 0.3  # seconds of each turn, in which one function is called repeatedly


def interleave(
    calls: dict[str, Callable[[], Any]], seconds: float, progress: Callable[[float], Any] | None = None
) -> dict[str, list[float]]:
    """Let the functions of `calls` {name: function} take turns for `seconds` -> {name: [seconds of each call]}.

    The first call of a turn is not counted: the threads of the previous function's library may still be spinning on
    the processor, waiting for more work. `progress`, if given, is called after each round with the share done.
    """
    for call in calls.values():
        for _ in range(WARM_UP):
            call()
    times: dict[str, list[float]] = {name: [] for name in calls}
    start = time.perf_counter()
    rounds, spent = 0, 0.0
    while rounds < LEAST or spent < seconds:
        for name, call in calls.items():
            times[name] += _take_turn(call)
        rounds, spent = rounds + 1, time.perf_counter() - start
        if progress:
            progress(min(1.0, spent / seconds, rounds / LEAST))
    return times


def seconds_of(call: Callable[[], Any], clock: Callable[[], float] = time.perf_counter) -> float:
    """How long a call takes."""
    before = clock()
    call()
    return clock() - before


def _take_turn(call: Callable[[], Any]) -> list[float]:
    """The seconds of each call of one turn, without the first."""
    call()
    times: list[float] = []
    while not times or sum(times) < TURN:
        times.append(seconds_of(call))
    return times


def medians(
    calls: dict[str, Callable[[], Any]], seconds: float, progress: Callable[[float], Any] | None = None
) -> dict[str, float]:
    """Let the functions take turns; see `interleave` -> {name: median seconds of a call}."""
    return {name: statistics.median(times) for name, times in interleave(calls, seconds, progress).items()}


def resident_peak() -> int:
    """The most memory this process has held so far, in bytes.

    Read from Linux's status file where there is one: `getrusage` would start from the peak of the parent process.
    """
    try:
        with open("/proc/self/status", encoding="utf8") as file:
            return next(1024 * int(line.split()[1]) for line in file if line.startswith("VmHWM"))
    except OSError:
        import resource

        unit = 1 if sys.platform == "darwin" else 1024  # bytes there
        return unit * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def peak_of_process(prepare: str, work: str) -> int:
    """The bytes that the code `work` needs at its peak, above what a process of its own holds after `prepare`."""
    code = [
        *("from experiments.measuring.timing import resident_peak", prepare),
        *("before = resident_peak()", work, "print(resident_peak() - before)"),
    ]
    return int(last_line([sys.executable, "-c", "\n".join(code)], env=environment()))


def peak_memory(which: str, size: Size, dropout: float, threads: int) -> int:
    """Bytes that `which` ("numpy" or "pytorch") needs at its peak for model, optimizer and three steps of `size`."""
    module = "experiments.measuring"
    prepare = f"from {module}.steps import Size, numpy_step, pytorch_step"
    if which == "pytorch":
        prepare += f"\nimport {module}.pytorch_model"
    make = f"numpy_step({size!r}, {dropout})" if which == "numpy" else f"pytorch_step({size!r}, {dropout}, {threads})"
    return peak_of_process(prepare, f"step = {make}\nstep(), step(), step()")

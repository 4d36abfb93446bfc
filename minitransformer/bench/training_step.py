"""`minitransformer bench`: a training step against PyTorch eager, and its share of the matrix-product rate."""

import importlib.metadata
import platform
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from minitransformer.bench.figures import plot_bench
from minitransformer.bench.sizes import SIZES
from minitransformer.bench.steps import adam_steps, numpy_step, pytorch_step, torch_is_installed
from minitransformer.bench.timing import interleave, matmul_rate, median, peak_memory
from minitransformer.system.process import blas_threads
from minitransformer.system.progress import tqdm

NAMES = (*SIZES, "adam")  # what can be timed; "adam" is the optimizer alone
HEADER = (
    f"{'size':<9} {'dropout':>7} {'ours':>9} {'PyTorch':>9} {'ratio':>5} {'tokens/s':>8} {'matmul':>6} {'GFLOP/s':>7}"
)
MEMORY_HEADER = f" {'MB':>5} {'theirs':>6}"


def run(names: Sequence[str], dropout: Sequence[float], seconds: float, memory: bool, folder: Path) -> dict[str, Any]:
    """Time a training step of each size -> {"threads", "machine", "rows"}.

    Prints a table, and with PyTorch draws bench.png into `folder`.

    Args:
        names: from NAMES; empty for all.
        dropout: the rates at which each size is timed.
        seconds: spent on each row.
        memory: whether to measure peak memory too, each model in a process of its own.
        folder: for the figure.
    """
    threads, with_torch = blas_threads(), torch_is_installed()
    machine = describe_machine(threads, with_torch)
    print(f"{machine}\n\n{HEADER}{MEMORY_HEADER if memory else ''}", flush=True)
    names = names or NAMES
    jobs: list[tuple[str, float | None]] = [(name, rate) for name in names if name != "adam" for rate in dropout]
    jobs += [("adam", None)] * ("adam" in names)
    rows = []
    with tqdm(total=len(jobs), leave=False, unit="row", bar_format="{l_bar}{bar}| {postfix}") as bar:
        for done, (name, rate) in enumerate(jobs):
            bar.set_postfix_str(name)
            rows.append(measure(name, rate, seconds, memory, threads, with_torch, _progress(bar, done)))
            tqdm.write(format_row(rows[-1]))
    drawn = [row for row in rows if row["size"] != "adam"]
    if with_torch and drawn:
        figure = folder / "bench.png"
        plot_bench(drawn, figure, threads)
        print(f"\nsaved {figure}")
    return {"threads": threads, "machine": machine, "rows": rows}


def measure(
    name: str,
    rate: float | None,
    seconds: float,
    memory: bool,
    threads: int,
    with_torch: bool,
    progress: Callable[[float], None],
) -> dict[str, Any]:
    """Time one row of the table -> its columns: times in seconds, memory in bytes, None for what was not measured.

    `rate` is that of dropout; None for "adam", which has none.
    """
    if rate is None:
        medians = _medians(adam_steps(threads, with_torch), seconds, progress)
        return {"size": name, "dropout": rate, **_times(medians)}
    size = SIZES[name]
    calls = {"numpy": numpy_step(size, rate)}
    if with_torch:
        calls["pytorch"] = pytorch_step(size, rate, threads)
    calls["matmul"], matmul_flops = matmul_rate()
    medians = _medians(calls, seconds, progress)
    row = {"size": name, "dropout": rate, **_times(medians)}
    row["tokens_per_second"] = size.tokens / medians["numpy"]
    row["matmul_rate"] = matmul_flops / medians["matmul"]
    row["matmul_share"] = size.matmul_flops / medians["numpy"] / row["matmul_rate"]
    if memory:
        measured = ("numpy", "pytorch") if with_torch else ("numpy",)
        row["memory"] = {which: peak_memory(which, size, rate, threads) for which in measured}
    return row


def format_row(row: dict[str, Any]) -> str:
    """One line of the table."""
    rate = "" if row["dropout"] is None else row["dropout"]
    other, ratio = ("", "") if row["ratio"] is None else (f"{1e3 * row['pytorch']:.1f} ms", f"{row['ratio']:.2f}")
    line = f"{row['size']:<9} {rate:>7} {1e3 * row['numpy']:>6.1f} ms {other:>9} {ratio:>5}"
    if "matmul_share" in row:
        line += f" {row['tokens_per_second']:>8,.0f} {row['matmul_share']:>6.2f} {row['matmul_rate'] / 1e9:>7.0f}"
    for size, columns in zip(row.get("memory", {}).values(), (5, 6), strict=False):
        line += f" {size / 1e6:>{columns}.0f}"
    return line


def describe_machine(threads: int, with_torch: bool) -> str:
    """The versions, the processor's architecture and the number of threads, on one line."""
    versions = f"NumPy {np.__version__}"
    if with_torch:
        versions += f", PyTorch {importlib.metadata.version('torch')}"
    return f"{versions}, Python {platform.python_version()}, {platform.machine()}, float32, threads: {threads}"


def _medians(
    calls: dict[str, Callable[[], Any]], seconds: float, progress: Callable[[float], None]
) -> dict[str, float]:
    return {key: median(times) for key, times in interleave(calls, seconds, progress).items()}


def _times(medians: dict[str, float]) -> dict[str, Any]:
    """The columns that all rows share."""
    theirs = medians.get("pytorch")
    return {"numpy": medians["numpy"], "pytorch": theirs, "ratio": theirs / medians["numpy"] if theirs else None}


def _progress(bar: Any, done: int) -> Callable[[float], None]:
    """A function that shows `done` rows and a share of the next one on the bar."""

    def show(share: float) -> None:
        bar.n = done + share
        bar.refresh()

    return show

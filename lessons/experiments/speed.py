"""How fast is a training step, against PyTorch and against its own matrix products?

A full step (forward, loss, backward, clipping, Adam) of this library and, if PyTorch is installed, of the same model in
PyTorch eager: the same shapes, positions of dropout, label smoothing, optimizer and number of threads. They take turns
of a third of a second in one process. The table shows the median times. "times its products" divides our time by that
of the step's matrix products alone, in the same shapes and threads: no step can take less with NumPy. --compiled adds
torch.compile and a minute of compiling for each row. --peer adds a step of yours: a file with a function
step(size, dropout, threads) -> a function that takes one step; docs/peers/jax_step.py is one for JAX. LSTM and GRU are
forward and backward of two such layers (d = 128, 64 sequences of 32 tokens, one thread); adam is the optimizer alone.

OMP_NUM_THREADS or OPENBLAS_NUM_THREADS sets the number of threads; the default is the number of processors.
"""

from pathlib import Path
from typing import Any

import numpy as np

from experiments.measuring.steps import (
    SIZES,
    adam_steps,
    numpy_step,
    products_alone,
    pytorch_step,
    recurrent_steps,
    torch_is_installed,
)
from experiments.measuring.timing import medians, peak_memory
from experiments.report import Figure, Options, Parser, Rows, Table, legend_below, listed
from minitransformer.checks import check_rate
from minitransformer.plotting import COLORS, GREY, counted, pyplot
from minitransformer.system.files import load_module
from minitransformer.system.process import blas_threads, limit_threads
from minitransformer.system.progress import tqdm

PER_ROW = 10.0
SECONDS = {True: 60, False: 170}
THREADS = None
NAMES = (*SIZES, "LSTM", "GRU", "adam")  # what can be timed


def add_options(parser: Parser) -> None:
    """The options that only this experiment has."""
    parser.add_argument("sizes", nargs="*", metavar="SIZE", help=f"one or more of {', '.join(NAMES)} (default: all)")
    about = "dropout rates (default 0.1 0.0)"
    parser.add_argument("--dropout", type=float, nargs="+", default=[0.1, 0.0], metavar="X", help=about)
    parser.add_argument("--memory", action="store_true", help="measure peak memory, too")
    parser.add_argument("--compiled", action="store_true", help="compare with torch.compile, too")
    about = "Python files whose step(size, dropout, threads) is timed, too"
    parser.add_argument("--peer", nargs="+", default=[], metavar="FILE", help=about)


def check(options: Options) -> None:
    """Raise ValueError for an option that cannot be used."""
    for name in options.sizes:
        if name not in NAMES:
            raise ValueError(f"unknown size {name!r}; known sizes: {', '.join(NAMES)}")
    for rate in options.dropout:
        check_rate("--dropout", rate)
    for path in options.peer:
        if not hasattr(load_module(path), "step"):
            raise ValueError(f"--peer needs a file with a function step(size, dropout, threads), and {path} has none")


def rows(options: Options) -> Rows:
    """A step of each size at each rate of dropout. Times are in seconds, memory in bytes, None if not measured."""
    names = options.sizes or NAMES
    jobs = [(name, rate) for name in names for rate in (options.dropout if name in SIZES else [None])]
    steps = []
    with tqdm(total=len(jobs), leave=False, unit="row", bar_format="{l_bar}{bar}| {postfix}") as bar:
        for done, (name, rate) in enumerate(jobs):
            bar.set_postfix_str(name)
            steps.append(measure(name, rate, options, bar, done))
    return {"steps": steps}


def measure(name: str, rate: float | None, options: Options, bar: Any, done: int) -> dict[str, Any]:
    """Time one row of the table, after those that are `done` -> its columns; without dropout the `rate` is None."""
    threads, with_torch = blas_threads(), torch_is_installed()
    peers = [Path(path).name for path in options.peer]
    row: dict[str, Any] = {"size": name, "dropout": rate, "threads": threads, "peers": peers}

    def progress(share: float) -> None:
        bar.update(done + share - bar.n)

    if name == "adam":
        return {**row, **_times(medians(adam_steps(threads, with_torch), options.seconds, progress))}
    if rate is None:
        with limit_threads(1):
            times = medians(recurrent_steps(name, with_torch), options.seconds, progress)
        return {**row, "threads": 1, **_times(times)}
    size = SIZES[name]
    calls = {"numpy": numpy_step(size, rate), "products": products_alone(size, rate)}
    if with_torch:
        calls["pytorch"] = pytorch_step(size, rate, threads)
    if with_torch and options.compiled:
        calls["compiled"] = pytorch_step(size, rate, threads, compiled=True)
    calls |= {peer: load_module(path).step(size, rate, threads) for peer, path in zip(peers, options.peer, strict=True)}
    row |= _times(medians(calls, options.seconds, progress))
    row["tokens_per_second"] = size.tokens / row["numpy"]
    if options.memory:
        row["memory"] = peak_memory("numpy", size, rate, threads)
        row["pytorch_memory"] = peak_memory("pytorch", size, rate, threads) if with_torch else None
    return row


def tables(rows: Rows) -> list[Table]:
    """One line for each size and rate."""
    columns = {
        "size": ("size", "", 1),
        "dropout": ("dropout", "", 1),
        "ours (ms)": ("numpy", ",.1f", 1e3),
        "PyTorch (ms)": ("pytorch", ",.1f", 1e3),
        "ratio": ("ratio", ".2f", 1),
        "torch.compile": ("compiled_ratio", ".2f", 1),
        **{name: (f"{name}_ratio", ".2f", 1) for row in rows["steps"] for name in row.get("peers", ())},
        "products (ms)": ("products", ",.1f", 1e3),
        "times its products": ("times_products", ".2f", 1),
        "tokens/s": ("tokens_per_second", ",.0f", 1),
        "MB": ("memory", ",.0f", 1e-6),
        "theirs (MB)": ("pytorch_memory", ",.0f", 1e-6),
    }
    shown = {name: how for name, how in columns.items() if any(row.get(how[0]) is not None for row in rows["steps"])}
    return [listed("a training step, float32", rows["steps"], shown)]


def findings(rows: Rows) -> list[str]:
    """How the step compares with PyTorch's, and with its products."""
    times = [row["times_products"] for row in rows["steps"] if row.get("times_products")]
    lines = [f"A step takes {min(times):.2f} to {max(times):.2f} times as long as its products."] if times else []
    ratios = [row["ratio"] for row in rows["steps"] if row["ratio"] and row["dropout"] is not None]
    if ratios:
        lines.append(f"PyTorch's step takes {min(ratios):.2f} to {max(ratios):.2f} times as long as ours.")
    return lines


def draw(rows: Rows) -> Figure:
    """How many times as fast as PyTorch each row is, and how many times as long as its products it takes."""
    steps = [row for row in rows["steps"] if row["dropout"] is not None and row["ratio"]]
    if not steps:
        return
    figure, (left, right) = pyplot().subplots(1, 2, figsize=(8.6, 3.4))
    sizes, rates = (list(dict.fromkeys(row[key] for row in steps)) for key in ("size", "dropout"))
    width = 0.76 / len(rates)
    for i, rate in enumerate(rates):
        chosen = {row["size"]: row for row in steps if row["dropout"] == rate}
        where = np.arange(len(sizes)) + (i - (len(rates) - 1) / 2) * width
        for axis, key in ((left, "ratio"), (right, "times_products")):
            heights = [chosen[size][key] for size in sizes]
            bars = axis.bar(where, heights, 0.95 * width, label=f"dropout {rate}", color=COLORS[i % len(COLORS)])
            numbers = [f"{height:.2f}" if height < 10 else f"{height:.0f}" for height in heights]
            axis.bar_label(bars, numbers, fontsize=8, rotation=0 if len(steps) <= 8 else 90, padding=2)
    left.axhline(1.0, color=GREY, linewidth=1, linestyle="--", label="PyTorch eager")
    threads = counted(steps[0]["threads"], "thread")
    left.set(title=f"Speed of a training step ({threads})", ylabel="times as fast as PyTorch eager")
    right.axhline(1.0, color=GREY, linewidth=1, linestyle="--")
    right.set(title="What a step costs beside its matrix products", ylabel="time over that of its products")
    for axis in (left, right):
        axis.set_xticks(range(len(sizes)), sizes)
        highest = max(patch.get_height() for patch in axis.patches)
        axis.set(xlabel="size of the model", xlim=(-0.7, len(sizes) - 0.3), ylim=(0, max(1.05, 1.25 * highest)))
    legend_below(figure, left, ncols=min(len(rates) + 1, 6))
    return figure


def _times(found: dict[str, float]) -> dict[str, Any]:
    """The times in seconds, and how many times ours the others are."""
    ratios = {f"{name}_ratio": seconds / found["numpy"] for name, seconds in found.items()}
    products = {"times_products": found["numpy"] / found["products"]} if "products" in found else {}
    return found | ratios | products | {"ratio": ratios.get("pytorch_ratio")}

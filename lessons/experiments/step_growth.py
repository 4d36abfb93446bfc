"""How does the cost of a training step grow with batch, length, width and depth?

One size grows at a time, from a small model with 16 sequences of 32 tokens. The figure has dashed lines with the slope
of the power that dominates when the size is large.
"""

from typing import Any

import numpy as np

from experiments.measuring.steps import Size, numpy_step
from experiments.measuring.timing import medians, peak_memory
from experiments.report import Figure, Options, Rows, Table, listed, name_ticks
from minitransformer.plotting import BLUE, ORANGE, pyplot, wrap
from minitransformer.system.process import blas_threads
from minitransformer.system.progress import tqdm

PER_ROW = 10.0
SECONDS = {True: 90, False: 300}
THREADS = None
BASE = Size("scaling", vocab_size=1000, d_model=128, num_heads=4, d_ff=512, num_layers=2, batch=16, length=32)
DROPOUT = 0.1
# what grows: its values, and the power of it that the step's time should approach for large values
GROWTH = {
    "batch": ((2, 4, 8, 16, 32, 64, 128), 1),
    "length": ((8, 16, 32, 64, 128, 256, 512), 2),
    "d_model": ((32, 64, 128, 256, 512, 1024), 2),
    "num_layers": ((1, 2, 4, 8, 16), 1),
}


def rows(options: Options) -> Rows:
    """Our step at each size of GROWTH, for a tenth of the seconds of a row."""
    jobs = [(what, value) for what, (values, _) in GROWTH.items() for value in values]
    steps = []
    for what, value in tqdm(jobs, leave=False, unit="size"):
        size = grown(what, value)
        seconds = medians({"numpy": numpy_step(size, DROPOUT)}, options.seconds / 10)["numpy"]
        memory = peak_memory("numpy", size, DROPOUT, blas_threads())
        steps.append({"what": what, "value": value, "seconds": seconds, "bytes": memory})
    return {"steps": steps}


def grown(what: str, value: int) -> Size:
    """BASE with one field changed; d_ff stays 4 d_model, as in the paper, and each head keeps 32 features."""
    changes: dict[str, Any] = {what: value}
    if what == "d_model":
        changes |= {"d_ff": 4 * value, "num_heads": value // 32}
    return BASE._replace(**changes)


def tables(rows: Rows) -> list[Table]:
    """One line for each size."""
    times = {"step (ms)": ("seconds", ".1f", 1e3), "peak memory (MB)": ("bytes", ",.0f", 1e-6)}
    return [listed("", rows["steps"], {"size": ("what",), "value": ("value",), **times})]


def findings(rows: Rows) -> list[str]:
    """The power of each size between its last two values."""
    found = []
    for what, (_, power) in GROWTH.items():
        last = [row for row in rows["steps"] if row["what"] == what][-2:]
        (n, before), (m, after) = ((row["value"], row["seconds"]) for row in last)
        measured = np.log(after / before) / np.log(m / n)
        grows = f"From {what} = {n} to {m} the time grows with the power {measured:.2f}"
        found.append(f"{grows}; expected in the end: {power}.")
    return found


def draw(rows: Rows) -> Figure:
    """Step time and peak memory over each size that grows, both axes logarithmic."""
    width = 2.7 * len(GROWTH)
    figure, axes = pyplot().subplots(2, len(GROWTH), figsize=(width, 4.9), sharex="col", sharey="row", squeeze=False)
    for column, (what, (_, power)) in enumerate(GROWTH.items()):
        chosen = [row for row in rows["steps"] if row["what"] == what]
        values = np.array([row["value"] for row in chosen])
        for axis, key, unit in ((axes[0, column], "seconds", 1e3), (axes[1, column], "bytes", 1e-6)):
            measured = unit * np.array([row[key] for row in chosen])
            axis.loglog(values, measured, "o-", color=BLUE, markersize=4, label="measured")
            lowest = measured.min() / 2  # where the dashed line ends, unless the values end first
            ends = np.array([max(values[0], values[-1] * (lowest / measured[-1]) ** (1 / power)), values[-1]])
            slope = measured[-1] * (ends / values[-1]) ** float(power)
            axis.loglog(ends, slope, "--", color=ORANGE, linewidth=1, label=f"slope {power}")
            axis.legend()
            name_ticks(axis, values)
        axes[1, column].set_xlabel(what)
    axes[0, 0].set_ylabel("training step (ms)")
    axes[1, 0].set_ylabel("peak memory (MB)")
    title = "Cost of a training step as one size grows, and the power of the size that dominates when it is large"
    figure.suptitle(wrap(title, width))
    return figure

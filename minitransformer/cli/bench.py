"""`minitransformer bench`: how fast and how large a training step is, against PyTorch and the matrix product alone."""

import json
import platform
from pathlib import Path

import numpy as np

from minitransformer.bench import (
    SIZES,
    adam_steps,
    interleave,
    matmul_rate,
    median,
    numpy_step,
    peak_memory,
    pytorch_step,
    torch_is_installed,
)
from minitransformer.checks import check_rate
from minitransformer.cli.curves import run_curves
from minitransformer.cli.decoding import run_decoding
from minitransformer.cli.device_report import run_device_report
from minitransformer.cli.scaling import run_scaling
from minitransformer.process import num_threads
from minitransformer.progress import tqdm

HELP = "time a training step against PyTorch eager and the matrix product"
DESCRIPTION = """\
Time a full training step (forward, loss, backward, clip, Adam) of this library and, where PyTorch is installed, of the
same model in PyTorch eager: same shapes, dropout places, smoothing, optimiser and number of threads. The two take turns
of a third of a second in one process, so that a slow moment of the machine slows both; medians of all steps are shown.
"matmul" is the share of the machine's own float32 matrix-product rate (1024 x 1024, in turns of its own) that our step
reaches.

  minitransformer bench                      tiny, small, medium and base-like, with and without dropout
  minitransformer bench tiny --seconds 20    one size, for longer
  minitransformer bench --memory             peak memory too, each model in a process of its own
  minitransformer bench --scaling            step time and memory as batch, length, width and depth grow
  minitransformer bench --decoding           greedy decoding with a kv, and the cost of each token of a long text
  minitransformer bench --curves             the loss of a GPT on Shakespeare, here and in PyTorch (minutes)
  minitransformer bench --device-report      on a GPU: gradients, agreement with NumPy, toy tasks, speed (minutes)

The number of threads is what OMP_NUM_THREADS or OPENBLAS_NUM_THREADS says, else the number of processors.
"""

INSTEAD = {
    "curves": run_curves,
    "decoding": run_decoding,
    "device_report": run_device_report,
    "scaling": run_scaling,
}


def add_arguments(parser):
    """The command's own arguments."""
    parser.add_argument("sizes", nargs="*", metavar="SIZE", help=f"of {', '.join(SIZES)} and adam (default: all)")
    parser.add_argument("--dropout", type=float, nargs="+", default=[0.1, 0.0], help="rates (default 0.1 0.0)")
    parser.add_argument("--seconds", type=float, default=10.0, help="for each row (default 10)")
    parser.add_argument("--memory", action="store_true", help="measure peak memory too")
    parser.add_argument("--scaling", action="store_true", help="time our step alone over growing sizes instead")
    parser.add_argument("--decoding", action="store_true", help="time greedy decoding with a kv instead")
    parser.add_argument(
        "--curves", action="store_true", help="train a GPT here and in PyTorch, draw both losses instead"
    )
    parser.add_argument("--device-report", action="store_true", help="check and time everything on the GPU instead")
    parser.add_argument("--plots", type=Path, default=Path("plots"), help="folder for the figure (default plots)")


def run(arguments):
    """Time, print, draw."""
    for name in arguments.sizes:
        if name not in (*SIZES, "adam"):
            raise ValueError(f"unknown size {name!r}; known sizes: {', '.join(SIZES)}, adam")
    if not arguments.seconds > 0:
        raise ValueError(f"--seconds must be greater than 0, got {arguments.seconds}")
    for rate in arguments.dropout:
        check_rate("--dropout", rate)
    for option, run_instead in INSTEAD.items():
        if getattr(arguments, option):
            return run_instead(arguments)
    threads = num_threads()
    with_torch = torch_is_installed()
    print(describe_machine(threads, with_torch) + "\n\n" + HEADER, flush=True)
    names = arguments.sizes or [*SIZES, "adam"]
    jobs = [(name, rate) for name in names if name != "adam" for rate in arguments.dropout]
    jobs += [("adam", None)] * ("adam" in names)
    rows = []
    with tqdm(total=len(jobs), disable=None, leave=False, bar_format="{l_bar}{bar}| {postfix}") as bar:
        for job in jobs:
            bar.set_postfix_str(job[0])
            done = bar.n
            rows.append(measure(*job, arguments, threads, with_torch, lambda share, n=done: _show(bar, n + share)))
            tqdm.write(format_row(rows[-1]))
    figure = arguments.plots / "bench.png"
    if with_torch and any(row["size"] != "adam" for row in rows):
        from minitransformer.plotting import plot_bench

        plot_bench([row for row in rows if row["size"] != "adam"], figure, threads)
        print(f"\nsaved {figure}")
    if arguments.json:
        print(json.dumps({"threads": threads, "machine": describe_machine(threads, with_torch), "rows": rows}))
    return 0


def measure(name, rate, arguments, threads, with_torch, progress):
    """Time one row of the table -> dict; times in seconds, memory in bytes, None for what was not measured."""
    size = SIZES.get(name)
    if size is None:
        calls = adam_steps(threads, with_torch)
    else:
        calls = {"numpy": numpy_step(size, rate)}
        if with_torch:
            calls["pytorch"] = pytorch_step(size, rate, threads)
        calls["matmul"], matmul_flops = matmul_rate()
    medians = {key: median(times) for key, times in interleave(calls, arguments.seconds, progress).items()}
    row = {"size": name, "dropout": rate, "numpy": medians["numpy"], "pytorch": medians.get("pytorch")}
    row["ratio"] = row["pytorch"] / row["numpy"] if with_torch else None
    if size is not None:
        row["tokens_per_second"] = size.tokens / row["numpy"]
        row["matmul_rate"] = matmul_flops / medians["matmul"]
        row["matmul_share"] = size.matmul_flops / row["numpy"] / row["matmul_rate"]
        if arguments.memory:
            measured = ("numpy", "pytorch") if with_torch else ("numpy",)
            row["memory"] = {which: peak_memory(which, size, rate, threads) for which in measured}
    return row


HEADER = (
    f"{'size':<10} {'dropout':>7} {'ours':>10} {'PyTorch':>10} {'ratio':>6} {'tokens/s':>9} {'matmul':>7}"
    f" {'GFLOP/s':>8} {'memory':>8} {'PyTorch':>8}"
)


def format_row(row):
    """One line of the table."""
    rate = "" if row["dropout"] is None else row["dropout"]
    other, ratio = ("", "") if row["ratio"] is None else (f"{1e3 * row['pytorch']:.1f} ms", f"{row['ratio']:.2f}")
    line = f"{row['size']:<10} {rate:>7} {1e3 * row['numpy']:>7.1f} ms {other:>10} {ratio:>6}"
    if "matmul_share" in row:
        line += f" {row['tokens_per_second']:>9,.0f} {row['matmul_share']:>7.2f} {row['matmul_rate'] / 1e9:>8.0f}"
    for size in row.get("memory", {}).values():
        line += f" {size / 1e6:>5.0f} MB"
    return line


def describe_machine(threads, with_torch):
    """What the numbers were measured on."""
    versions = f"NumPy {np.__version__}"
    if with_torch:
        import importlib.metadata

        versions += f", PyTorch {importlib.metadata.version('torch')}"
    return f"{versions}, Python {platform.python_version()}, {platform.machine()}, {threads} threads, float32"


def _show(bar, done):
    bar.n = done
    bar.refresh()

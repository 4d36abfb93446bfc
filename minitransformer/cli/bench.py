"""`minitransformer bench`: time a training step, and the other benchmarks."""

import argparse
import json
from pathlib import Path

from minitransformer.backend import backend_name
from minitransformer.bench import (
    attention,
    communication,
    curves,
    decoding,
    device_report,
    processes,
    recurrent,
    scaling,
    training_step,
)
from minitransformer.checks import check_rate

DESCRIPTION = """\
Time a full training step (forward, loss, backward, clipping, Adam) of this library and, if PyTorch is installed, of the
same model in PyTorch eager, with the same shapes, positions of dropout, label smoothing, optimizer and number of
threads. The two take turns of a third of a second in one process, so that both are slowed by other work on the machine.
The table shows the median times. "matmul" compares the arithmetic rate of our step with that of a float32 matrix
product (1024 x 1024).

  minitransformer bench                       tiny, small, medium and base-like, with and without dropout
  minitransformer bench tiny --seconds 20     one size, measured for longer
  minitransformer bench --memory              peak memory, too, with each model in its own process
  minitransformer bench --scaling             step time and memory for growing batch, length, width and depth
  minitransformer bench --decoding            greedy decoding with a KV cache, and the time per token of a long text
  minitransformer bench --recurrent           a training step of LSTM and GRU layers, ours and PyTorch's
  minitransformer bench --processes           a step in 1 process, on 2 threads and in 2 processes (needs MPI)
  minitransformer bench --attention           one call of each kind of attention, and PyTorch's, for growing lengths
  minitransformer bench --curves              training loss of a GPT on Shakespeare, ours and PyTorch's (minutes)
  minitransformer bench --curves translation  the same of an encoder-decoder on pairs of sentences
  minitransformer bench --communication       the sum over processes, and a step on many machines, simulated from it
  minitransformer bench --device-report       gradients, agreement with NumPy, toy tasks and speed on a GPU (minutes)

OMP_NUM_THREADS or OPENBLAS_NUM_THREADS sets the number of threads; the default is the number of processors.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's own arguments."""
    known = ", ".join(training_step.NAMES)
    parser.add_argument("sizes", nargs="*", metavar="SIZE", help=f"one or more of {known} (default: all)")
    parser.add_argument(
        "--dropout", type=float, nargs="+", default=[0.1, 0.0], metavar="X", help="dropout rates (default 0.1 0.0)"
    )
    parser.add_argument("--seconds", type=float, default=10.0, metavar="X", help="seconds per row (default 10)")
    parser.add_argument("--memory", action="store_true", help="measure peak memory, too")
    parser.add_argument("--scaling", action="store_true", help="instead, time our step with growing sizes")
    parser.add_argument("--decoding", action="store_true", help="instead, time greedy decoding with a KV cache")
    parser.add_argument("--recurrent", action="store_true", help="instead, time a training step of LSTM and GRU layers")
    parser.add_argument(
        "--processes", action="store_true", help="instead, time a step in one process, on two threads, in two processes"
    )
    parser.add_argument(
        "--attention",
        action="store_true",
        help="instead, time and measure the memory of full, tiled, windowed, strided and linear attention",
    )
    parser.add_argument(
        "--curves",
        nargs="?",
        const="shakespeare",
        choices=list(curves.PROBLEMS),
        help="instead, train a model with this library and with PyTorch, and plot both losses: a GPT on Shakespeare "
        "(the default), or an encoder-decoder on translation",
    )
    parser.add_argument("--communication", action="store_true", help="instead, time the sum over processes (mpiexec)")
    parser.add_argument("--device-report", action="store_true", help="instead, check and time everything on the GPU")
    parser.add_argument(
        "--runs",
        type=Path,
        default=Path("runs"),
        metavar="FOLDER",
        help="save the figures in FOLDER/bench (default runs)",
    )


def run(arguments: argparse.Namespace) -> int:
    """Run the benchmark that was asked for -> exit status."""
    check(arguments.sizes, arguments.dropout, arguments.seconds)
    if backend_name() != "numpy" and not (arguments.curves or arguments.device_report):
        raise ValueError("bench times what NumPy does, so --backend must be numpy; on a GPU, use --device-report")
    folder = arguments.runs / "bench"
    if arguments.curves:
        result = curves.run(arguments.curves, arguments.seed, folder)
    elif arguments.attention:
        result = attention.run(arguments.seconds, folder)
    elif arguments.communication:
        result = communication.run(arguments.seconds, folder)
    elif arguments.decoding:
        result = decoding.run(arguments.seconds, folder)
    elif arguments.device_report:
        result = device_report.run(folder, arguments.backend)
    elif arguments.processes:
        result = processes.run(arguments.sizes, arguments.seconds, arguments.memory)
    elif arguments.recurrent:
        result = recurrent.run(arguments.seconds)
    elif arguments.scaling:
        result = scaling.run(arguments.seconds, folder)
    else:
        result = training_step.run(arguments.sizes, arguments.dropout, arguments.seconds, arguments.memory, folder)
    if arguments.json:
        print(json.dumps(result))
    return 0 if result.get("passed", True) else 1


def check(sizes: list[str], dropout: list[float], seconds: float) -> None:
    """Raise ValueError for an argument that no benchmark can use."""
    for name in sizes:
        if name not in training_step.NAMES:
            raise ValueError(f"unknown size {name!r}; known sizes: {', '.join(training_step.NAMES)}")
    if not seconds > 0:
        raise ValueError(f"--seconds must be greater than 0, got {seconds}")
    for rate in dropout:
        check_rate("--dropout", rate)

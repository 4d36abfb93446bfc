"""The benchmarks: how fast and how large a training step is, against PyTorch and against the matrix product alone.

Each benchmark is one file with one function `run`, which measures, prints a table, draws a figure and returns what it
measured: training_step, scaling, decoding, attention, recurrent, curves, lengths, processes, communication and
device_report. The other files are parts of these.

Method: both models have the same shapes, dropout places, label smoothing, padding, clipping, optimizer and number of
threads. They take turns of a third of a second in one process, so a slow moment of the machine slows both, and the
medians of all steps are compared. The rate of the matrix product is measured in turns of its own between theirs.
"""

from minitransformer.bench.sizes import SIZES, Size
from minitransformer.bench.steps import adam_steps, numpy_step, pytorch_step, torch_is_installed
from minitransformer.bench.timing import interleave, matmul_rate, median, peak_memory

__all__ = [
    "SIZES",
    "Size",
    "adam_steps",
    "interleave",
    "matmul_rate",
    "median",
    "numpy_step",
    "peak_memory",
    "pytorch_step",
    "torch_is_installed",
]

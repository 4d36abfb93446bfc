"""How fast a training step is: here, in PyTorch, and against the rate of the matrix product alone.

The method. Both models have the same shapes, dropout places, label smoothing, padding, clipping and Adam, and the same
number of threads. They take turns in one process, step by step, so that a slow moment of the machine slows both, and
the medians are compared. The rate of the matrix product is measured between them, in the same turns.
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

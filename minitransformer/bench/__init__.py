"""How fast a training step is: here, in PyTorch, and against the rate of the matrix product alone.

The method. Both models have the same shapes, dropout places, label smoothing, padding, clipping and Adam, and the same
number of threads. They take turns of a third of a second in one process, so that a slow moment of the machine slows
both, and the medians of all steps are compared. The rate of the matrix product is measured in turns between theirs.
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

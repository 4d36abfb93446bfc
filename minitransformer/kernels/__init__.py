"""Fused GPU kernels for the hot formulas: each takes one or two launches instead of five to thirty.

Nothing is derived here. The formulas and their derivations are in `functional` (and Adam's in `training`), which check
their arguments and then dispatch: `@fused` decorates the plain formula of the softmax (see backend.py), so that its
calls go to `kernels.softmax` on a GPU. Tests compare the two. A kernel function takes and returns plain arrays and
numbers, exactly as the formula does. It returns NotImplemented for arguments that it does not support, such as complex
numbers.

Each Python file chooses arrays and numbers of threads. The kernels themselves are CUDA source, in the .cu file of the
same name; rows.cuh holds what they share. CuPy compiles them at the first launch, so importing this package costs
nothing and needs no CuPy.
"""

from minitransformer.kernels.activations import relu_backward
from minitransformer.kernels.adam import adam_update
from minitransformer.kernels.cross_entropy import cross_entropy, cross_entropy_backward
from minitransformer.kernels.dropout import dropout, dropout_backward
from minitransformer.kernels.layer_norm import layer_norm, layer_norm_backward
from minitransformer.kernels.scatter import scatter_add
from minitransformer.kernels.softmax import softmax, softmax_backward

__all__ = [
    "adam_update",
    "cross_entropy",
    "cross_entropy_backward",
    "dropout",
    "dropout_backward",
    "layer_norm",
    "layer_norm_backward",
    "relu_backward",
    "scatter_add",
    "softmax",
    "softmax_backward",
]

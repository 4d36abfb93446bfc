"""The mathematics once more, as fused kernels for a GPU: each function does in one or two kernels what the plain
function of the same name does in five to thirty.

Nothing is derived here: the formulas and their derivations stand in the plain functions, to which tests hold these.
Arguments, results and caches are the same, so a plain forward pass may meet a fused backward pass and the reverse.
`backend.fused_on_gpu`, written above a plain function, sends its calls here when the backend is CuPy. A function that
cannot take its arguments, such as complex numbers, returns NotImplemented, and the plain formula is used.

Each Python file chooses arrays and numbers of threads; the kernels, in CUDA, stand beside it in the .cu file of the
same name, and what they share in rows.cuh.
"""

from minitransformer.kernels.activations import relu_backward
from minitransformer.kernels.adam import adam_update
from minitransformer.kernels.cross_entropy import cross_entropy, cross_entropy_backward
from minitransformer.kernels.dropout import dropout, dropout_backward
from minitransformer.kernels.embedding import embedding_backward
from minitransformer.kernels.layer_norm import layer_norm, layer_norm_backward
from minitransformer.kernels.softmax import softmax, softmax_backward

__all__ = [
    "adam_update",
    "cross_entropy",
    "cross_entropy_backward",
    "dropout",
    "dropout_backward",
    "embedding_backward",
    "layer_norm",
    "layer_norm_backward",
    "relu_backward",
    "softmax",
    "softmax_backward",
]

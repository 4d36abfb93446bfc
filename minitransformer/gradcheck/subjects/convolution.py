"""The rows for convolution: the functions, the layers and the language model made of them."""

import itertools
from typing import Any

from minitransformer import functional as F
from minitransformer import layers as L
from minitransformer.config import NORMS
from minitransformer.core import Layer
from minitransformer.functional.since_2017.activations import CONV_ACTIVATIONS
from minitransformer.gradcheck.check import randomize_parameters
from minitransformer.gradcheck.subjects.functions import activation
from minitransformer.gradcheck.subjects.layers import DROPOUT, target
from minitransformer.gradcheck.subjects.models import LARGE_EPS, loss_problem
from minitransformer.gradcheck.subjects.table import Draw, Problem, layer_problem, register
from minitransformer.models import ConvConfig
from minitransformer.models.before_2017.convolutional import ConvLM


def conv1d(d: Draw, kernel: int = 3, dilation: int = 1, causal: bool = True, padded: bool = False) -> Problem:
    """A convolution from C to F features."""
    x, W, b = d("BTC"), d.array(kernel, d.n.C, d.n.F), d("F")

    def function(x, W, b, mask):
        return F.conv1d(x, W, b, dilation, causal, mask)

    return Problem(function, F.conv1d_backward, {"x": x, "W": W, "b": b}, {"mask": d.tokens(padded)}, {})


def conv_layer(d: Draw, dilation: int = 1, causal: bool = True, bias: bool = True, padded: bool = False) -> Problem:
    """A convolution from C to F features, with its parameters."""
    layer = L.Conv1d(d.n.C, d.n.F, 3, dilation=dilation, causal=causal, bias=bias, dtype=d.dtype)
    return layer_problem(layer, d, target(d), {"mask": d.tokens(padded)})


def activated(d: Draw, dropout: float | None = None, **options: Any) -> Problem:
    """A dilated convolution with its activation, inside a residual connection if there is a rate of dropout."""
    layer: Layer = L.ActivatedConv1d(d.n.C, 3, dilation=2, dtype=d.dtype, **options)
    if dropout is not None:
        layer = L.Residual(layer, L.LayerNorm(d.n.C, dtype=d.dtype), dropout_rate=dropout)
    return layer_problem(layer, d, target(d), {"mask": d.tokens(padded=True)})


def conv_lm(d: Draw, dropout: float, dilation: int = 1, tie_embeddings: bool = True, **changes: Any) -> Problem:
    """A language model of three layers, on padded ids."""
    changes |= {"dilation": dilation, "tie_embeddings": tie_embeddings, "norm_eps": LARGE_EPS}
    config = ConvConfig(d.n.V, d_model=d.n.C, num_layers=3, dropout=dropout, **changes)
    model = ConvLM(config, dtype=d.dtype)
    randomize_parameters(model, d.rng)
    ids = d.ids(d.n.T + 1, padded=True)
    return loss_problem(model, {"ids": ids[:, :-1]}, ids[:, 1:])


register("glu", F.glu, activation, function="glu")
for causal, dilation, padded in itertools.product((True, False), (1, 2), (False, True)):
    row = f"conv1d causal={causal} dilation={dilation} padding={padded}"
    register(row, F.conv1d, conv1d, causal=causal, dilation=dilation, padded=padded)
for kernel in (1, 4):
    register(f"conv1d kernel={kernel} causal=False", F.conv1d, conv1d, kernel=kernel, causal=False)
register("conv1d dilation=7", F.conv1d, conv1d, dilation=7)  # all taps but the last read zeros alone
for causal, padded in itertools.product((True, False), (False, True)):
    register(f"Conv1d causal={causal} padding={padded}", L.Conv1d, conv_layer, causal=causal, padded=padded)
register("Conv1d bias=False dilation=2", L.Conv1d, conv_layer, bias=False, dilation=2)
for name in CONV_ACTIVATIONS:
    register(f"ActivatedConv1d activation={name}", L.ActivatedConv1d, activated, activation=name)
    register(f"Residual convolution activation={name}", L.Residual, activated, activation=name, dropout=DROPOUT)
for name, norm in itertools.product(CONV_ACTIVATIONS, NORMS):
    row = f"ConvLM activation={name} norm={norm}"
    register(row, ConvLM, conv_lm, stack=True, dropout=DROPOUT, activation=name, norm=norm)
for tied in (True, False):
    row = f"ConvLM dilation=2 kernel_size=2 tied={tied}"
    register(row, ConvLM, conv_lm, stack=True, dropout=0.0, dilation=2, kernel_size=2, tie_embeddings=tied)

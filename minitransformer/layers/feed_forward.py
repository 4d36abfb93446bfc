"""The position-wise feed-forward network, with the paper's activation or one of its successors."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from minitransformer.backend import xp
from minitransformer.checks import check_choice
from minitransformer.core import Layer
from minitransformer.functional import (
    gelu,
    gelu_backward,
    gelu_tanh,
    gelu_tanh_backward,
    relu,
    relu_backward,
    silu,
    silu_backward,
)
from minitransformer.functional.activations import ShareCache
from minitransformer.functional.dropout import DropoutCache
from minitransformer.functional.linear import LinearCache
from minitransformer.functional.since_2017.gated import (
    GatedCache,
    geglu,
    geglu_backward,
    geglu_tanh,
    geglu_tanh_backward,
    swiglu,
    swiglu_backward,
)
from minitransformer.layers.dropout import Dropout
from minitransformer.layers.linear import Linear

GATED: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {  # from 2F features to F
    "geglu": (geglu, geglu_backward),
    "geglu_tanh": (geglu_tanh, geglu_tanh_backward),  # T5 version 1.1
    "swiglu": (swiglu, swiglu_backward),  # LLaMA
}
ACTIVATIONS: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "relu": (relu, relu_backward),  # the paper
    "gelu": (gelu, gelu_backward),  # BERT
    "gelu_tanh": (gelu_tanh, gelu_tanh_backward),  # GPT-2
    "silu": (silu, silu_backward),
    **GATED,
}


class FeedForwardCache(NamedTuple):
    """The cache of `FeedForward`."""

    expand: LinearCache
    activation: xp.ndarray | ShareCache | GatedCache
    dropout: DropoutCache | None
    contract: LinearCache


class FeedForward(Layer):
    """Two linear maps with an activation between them, applied to each token alone (paper section 3.3, equation 2).

    x (..., C) -> y (..., C), with d_ff features in between. Dropout inside is not in the paper; it is off by default.

    activation="relu", the paper:                FFN(x) = max(0, x W1 + b1) W2 + b2
    "gelu", "gelu_tanh", "silu":                 another function a instead of max(0, .)
    "geglu", "geglu_tanh", "swiglu", gated:      FFN(x) = (a(x W + b) * (x V + c)) W2 + b2

    With a gated activation, `expand` holds W | V (C, 2F) side by side: the gate, and the values that it scales.
    bias=False leaves out b, c and b2. Raises ValueError for an activation that is not among ACTIVATIONS.
    """

    def __init__(
        self,
        d_model: int,
        d_ff: int,
        *,
        activation: str = "relu",
        bias: bool = True,
        dropout_rate: float = 0.0,
        rng: np.random.Generator | None = None,
        dtype: DTypeLike = np.float32,
    ) -> None:
        self.activation = check_choice("activation", activation, ACTIVATIONS)
        blocks = 2 if activation in GATED else 1
        self.expand = Linear(d_model, d_ff, blocks=blocks, bias=bias, rng=rng, dtype=dtype)
        self.dropout = Dropout(dropout_rate)
        self.contract = Linear(d_ff, d_model, bias=bias, rng=rng, dtype=dtype)

    def forward(self, x: xp.ndarray, rng: np.random.Generator | None = None) -> tuple[xp.ndarray, FeedForwardCache]:
        """x (..., C) -> y (..., C)."""
        activate, _ = ACTIVATIONS[self.activation]
        h, cache_expand = self.expand.forward(x)  # (..., F), or (..., 2F) if gated
        a, cache_activation = activate(h)  # (..., F)
        d, cache_dropout = self.dropout.forward(a, rng)
        y, cache_contract = self.contract.forward(d)
        return y, FeedForwardCache(cache_expand, cache_activation, cache_dropout, cache_contract)

    def backward(self, dy: xp.ndarray, cache: FeedForwardCache) -> xp.ndarray:
        """dy (..., C) -> dx (..., C)."""
        _, activate_backward = ACTIVATIONS[self.activation]
        dd = self.contract.backward(dy, cache.contract)  # (..., F)
        da = self.dropout.backward(dd, cache.dropout)
        dh = activate_backward(da, cache.activation)  # (..., F), or (..., 2F) if gated
        return self.expand.backward(dh, cache.expand)

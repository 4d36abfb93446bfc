"""The feed-forward network with the activations that came after ReLU, some of them gated."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from minitransformer.checks import check_choice
from minitransformer.functional import relu, relu_backward
from minitransformer.functional.since_2017 import activations, gated
from minitransformer.layers.dropout import Dropout
from minitransformer.layers.feed_forward import FeedForward
from minitransformer.layers.linear import Linear

GATED: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {  # from 2F features to F
    "geglu": (gated.geglu, gated.geglu_backward),
    "geglu_tanh": (gated.geglu_tanh, gated.geglu_tanh_backward),  # T5 version 1.1
    "swiglu": (gated.swiglu, gated.swiglu_backward),  # LLaMA
}
ACTIVATIONS: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "relu": (relu, relu_backward),  # the paper
    "gelu": (activations.gelu, activations.gelu_backward),  # BERT
    "gelu_tanh": (activations.gelu_tanh, activations.gelu_tanh_backward),  # GPT-2
    "silu": (activations.silu, activations.silu_backward),
    **GATED,
}


class ActivatedFeedForward(FeedForward):
    """A `FeedForward` with another activation between its two maps.

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
        activation: str,
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

    def _activate(self, h):
        """h (..., F), or (..., 2F) if gated -> a (..., F)."""
        return ACTIVATIONS[self.activation][0](h)

    def _activate_backward(self, da, cache):
        """da (..., F) -> dh, like h."""
        return ACTIVATIONS[self.activation][1](da, cache)

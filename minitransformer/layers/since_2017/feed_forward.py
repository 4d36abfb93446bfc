"""The feed-forward network with the activations that came after ReLU, some of them gated."""

import numpy as np
from numpy.typing import DTypeLike

from minitransformer.checks import check_choice
from minitransformer.functional.since_2017.activations import ACTIVATIONS, GATED
from minitransformer.layers.dropout import Dropout
from minitransformer.layers.feed_forward import FeedForward
from minitransformer.layers.linear import Linear


class ActivatedFeedForward(FeedForward):
    """A `FeedForward` with another activation a between its two maps, one of `ACTIVATIONS`.

    FFN(x) = a(x W1 + b1) W2 + b2, or with one of GATED    FFN(x) = (a(x W + b) * (x V + c)) W2 + b2

    There `expand` holds W | V (C, 2F) side by side: the gate, and the values that it scales. bias=False leaves out all
    biases. Raises ValueError for an activation that is not among ACTIVATIONS.
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

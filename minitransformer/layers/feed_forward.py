"""The position-wise feed-forward network (paper section 3.3)."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from minitransformer.backend import xp
from minitransformer.core import Layer
from minitransformer.functional import relu, relu_backward
from minitransformer.functional.dropout import DropoutCache
from minitransformer.functional.linear import LinearCache
from minitransformer.layers.dropout import Dropout
from minitransformer.layers.linear import Linear


class FeedForwardCache(NamedTuple):
    """The cache of `FeedForward`."""

    expand: LinearCache
    activation: Any  # the output of ReLU, or what another activation remembers
    dropout: DropoutCache | None
    contract: LinearCache


class FeedForward(Layer):
    """Two linear maps with an activation between them, applied to each token alone (paper section 3.3, equation 2).

    FFN(x) = max(0, x W1 + b1) W2 + b2

    x (..., C) -> y (..., C), with d_ff features in between. Dropout inside is not in the paper; it is off by default.
    bias=False leaves out b1 and b2. Other activations came later: see since_2017/feed_forward.py.
    """

    activation = "relu"  # for code that reads the weights and goes around `forward`, as decoding/faster/folded.py does

    def __init__(
        self,
        d_model: int,
        d_ff: int,
        *,
        bias: bool = True,
        dropout_rate: float = 0.0,
        rng: np.random.Generator | None = None,
        dtype: DTypeLike = np.float32,
    ) -> None:
        self.expand = Linear(d_model, d_ff, bias=bias, rng=rng, dtype=dtype)
        self.dropout = Dropout(dropout_rate)
        self.contract = Linear(d_ff, d_model, bias=bias, rng=rng, dtype=dtype)

    def forward(self, x: xp.ndarray, rng: np.random.Generator | None = None) -> tuple[xp.ndarray, FeedForwardCache]:
        """x (..., C) -> y (..., C)."""
        h, cache_expand = self.expand.forward(x)  # (..., F)
        a, cache_activation = self._activate(h)
        d, cache_dropout = self.dropout.forward(a, rng)
        y, cache_contract = self.contract.forward(d)
        return y, FeedForwardCache(cache_expand, cache_activation, cache_dropout, cache_contract)

    def backward(self, dy: xp.ndarray, cache: FeedForwardCache) -> xp.ndarray:
        """dy (..., C) -> dx (..., C)."""
        dd = self.contract.backward(dy, cache.contract)  # (..., F)
        da = self.dropout.backward(dd, cache.dropout)
        dh = self._activate_backward(da, cache.activation)
        return self.expand.backward(dh, cache.expand)

    def _activate(self, h):
        """h (..., F) -> a (..., F)."""
        return relu(h)

    def _activate_backward(self, da, cache):
        """da (..., F) -> dh (..., F)."""
        return relu_backward(da, cache)

"""The position-wise feed-forward network."""

from typing import NamedTuple

import numpy as np

from minitransformer.core import Layer
from minitransformer.functional import relu, relu_backward
from minitransformer.layers.dropout import Dropout
from minitransformer.layers.linear import Linear


class FeedForwardCache(NamedTuple):
    """What `FeedForward` remembers."""

    expand: object
    relu: object
    dropout: object
    contract: object


class FeedForward(Layer):
    """FFN(x) = max(0, x W1 + b1) W2 + b2, for each token alone (paper section 3.3, equation 2).

    x (..., C) -> y (..., C), with d_ff features between. Dropout inside is not in the paper's text; its default is off.
    """

    def __init__(self, d_model, d_ff, *, dropout_rate=0.0, rng=None, dtype=np.float32):
        self.expand = Linear(d_model, d_ff, rng=rng, dtype=dtype)
        self.dropout = Dropout(dropout_rate)
        self.contract = Linear(d_ff, d_model, rng=rng, dtype=dtype)

    def forward(self, x, rng=None):
        """x (..., C) -> y (..., C)."""
        h, cache_expand = self.expand.forward(x)  # (..., F)
        a, cache_relu = relu(h)
        d, cache_dropout = self.dropout.forward(a, rng)
        y, cache_contract = self.contract.forward(d)
        return y, FeedForwardCache(cache_expand, cache_relu, cache_dropout, cache_contract)

    def backward(self, dy, cache):
        """dy (..., C) -> dx (..., C)."""
        dd = self.contract.backward(dy, cache.contract)  # (..., F)
        da = self.dropout.backward(dd, cache.dropout)
        dh = relu_backward(da, cache.relu)
        return self.expand.backward(dh, cache.expand)

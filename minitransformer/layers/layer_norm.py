"""Layer normalisation with its scale and shift."""

import numpy as np

from minitransformer.checks import check_width
from minitransformer.core import Layer, Parameter
from minitransformer.functional import layer_norm, layer_norm_backward


class LayerNorm(Layer):
    """Each token's features to mean 0 and variance 1, times gamma (C,), plus beta (C,); see `functional.layer_norm`."""

    def __init__(self, d_model, *, eps=1e-5, dtype=np.float32):
        self.gamma = Parameter(np.ones(d_model, dtype))
        self.beta = Parameter(np.zeros(d_model, dtype))
        self.eps = eps

    def forward(self, x, rng=None):
        """x (..., C) -> y (..., C)."""
        check_width("LayerNorm", x, len(self.gamma.data), self.gamma.data.dtype)
        return layer_norm(x, self.gamma.data, self.beta.data, self.eps)

    def backward(self, dy, cache):
        """dy (..., C) -> dx (..., C)."""
        dx, dgamma, dbeta = layer_norm_backward(dy, cache)
        self.gamma.grad += dgamma
        self.beta.grad += dbeta
        return dx

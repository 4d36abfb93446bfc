"""Root mean square normalisation with its scale."""

import numpy as np

from minitransformer.checks import check_width
from minitransformer.core import Layer, Parameter
from minitransformer.functional import rms_norm, rms_norm_backward


class RMSNorm(Layer):
    """Each token's features to mean square 1, times gamma (C,); see `functional.rms_norm`."""

    def __init__(self, d_model, *, eps=1e-5, dtype=np.float32):
        self.gamma = Parameter(np.ones(d_model, dtype))
        self.eps = eps

    def forward(self, x, rng=None):
        """x (..., C) -> y (..., C)."""
        check_width("RMSNorm", x, len(self.gamma.data), self.gamma.data.dtype)
        return rms_norm(x, self.gamma.data, self.eps)

    def backward(self, dy, cache):
        """dy (..., C) -> dx (..., C)."""
        dx, dgamma = rms_norm_backward(dy, cache)
        self.gamma.grad += dgamma
        return dx

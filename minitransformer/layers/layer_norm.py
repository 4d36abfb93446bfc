"""Layer normalization with its scale and shift."""

import numpy as np
from numpy.typing import DTypeLike

from minitransformer.backend import xp
from minitransformer.checks import check_width
from minitransformer.core import Layer, Parameter
from minitransformer.functional import layer_norm, layer_norm_backward
from minitransformer.functional.layer_norm import LayerNormCache


class LayerNorm(Layer):
    """Give each token's features mean 0 and variance 1, times gamma (C,), plus beta (C,): `functional.layer_norm`."""

    def __init__(self, d_model: int, *, eps: float = 1e-5, dtype: DTypeLike = np.float32) -> None:
        self.gamma = Parameter(np.ones(d_model, dtype))
        self.beta = Parameter(np.zeros(d_model, dtype))
        self.eps = eps

    def forward(self, x: xp.ndarray, rng: np.random.Generator | None = None) -> tuple[xp.ndarray, LayerNormCache]:
        """x (..., C) -> y (..., C)."""
        check_width("LayerNorm", x, len(self.gamma.data), self.gamma.data.dtype)
        return layer_norm(x, self.gamma.data, self.beta.data, self.eps)

    def backward(self, dy: xp.ndarray, cache: LayerNormCache) -> xp.ndarray:
        """dy (..., C) -> dx (..., C)."""
        dx, dgamma, dbeta = layer_norm_backward(dy, cache)
        self.gamma.add_grad(dgamma)
        self.beta.add_grad(dbeta)
        return dx

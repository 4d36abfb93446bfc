"""Root mean square normalization with its scale."""

import numpy as np
from numpy.typing import DTypeLike

from minitransformer.backend import xp
from minitransformer.checks import check_width
from minitransformer.core import Layer, Parameter
from minitransformer.functional.since_2017.rms_norm import RMSNormCache, rms_norm, rms_norm_backward


class RMSNorm(Layer):
    """Give each token's features mean square 1, times gamma (C,): `functional.since_2017.rms_norm`."""

    def __init__(self, d_model: int, *, eps: float = 1e-5, dtype: DTypeLike = np.float32) -> None:
        self.gamma = Parameter(np.ones(d_model, dtype))
        self.eps = eps

    def forward(self, x: xp.ndarray, rng: np.random.Generator | None = None) -> tuple[xp.ndarray, RMSNormCache]:
        """x (..., C) -> y (..., C)."""
        check_width("RMSNorm", x, len(self.gamma.data), self.gamma.data.dtype)
        return rms_norm(x, self.gamma.data, self.eps)

    def backward(self, dy: xp.ndarray, cache: RMSNormCache) -> xp.ndarray:
        """dy (..., C) -> dx (..., C)."""
        dx, dgamma = rms_norm_backward(dy, cache)
        self.gamma.add_grad(dgamma)
        return dx

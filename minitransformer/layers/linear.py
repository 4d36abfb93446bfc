"""The affine map with its weights."""

import numpy as np
from numpy.typing import DTypeLike

from minitransformer.backend import xp
from minitransformer.checks import check_shape, check_width
from minitransformer.core import Layer, Parameter
from minitransformer.functional import linear, linear_backward
from minitransformer.functional.linear import LinearCache, linear_input_backward
from minitransformer.layers.initializers import xavier_uniform


class Linear(Layer):
    """y = x W + b        x (..., I), W (I, O), b (O,), y (..., O)

    PyTorch's `nn.Linear` stores W transposed. With blocks > 1 the layer is `blocks` maps to O features each, side by
    side in one matrix (I, blocks * O). forward raises ValueError for a wrong width and TypeError for another dtype.
    """

    def __init__(
        self,
        fan_in: int,
        fan_out: int,
        *,
        blocks: int = 1,
        bias: bool = True,
        rng: np.random.Generator | None = None,
        dtype: DTypeLike = np.float32,
    ) -> None:
        self.W = Parameter(xavier_uniform(rng, fan_in, fan_out, blocks, dtype))
        self.b: Parameter | None = Parameter(np.zeros(blocks * fan_out, dtype)) if bias else None

    def forward(self, x: xp.ndarray, rng: np.random.Generator | None = None) -> tuple[xp.ndarray, LinearCache]:
        """x (..., I) -> y (..., O)."""
        check_width("Linear", x, len(self.W.data), self.W.data.dtype)
        return linear(x, self.W.data, None if self.b is None else self.b.data)

    def backward(self, dy: xp.ndarray, cache: LinearCache) -> xp.ndarray:
        """dy (..., O) -> dx (..., I)."""
        check_shape("dy", dy, (*cache.x.shape[:-1], self.W.data.shape[1]))  # before a gradient has changed
        if self.W.frozen and (self.b is None or self.b.frozen):
            return linear_input_backward(dy, cache.W)
        dx, dW, db = linear_backward(dy, cache)
        self.W.add_grad(dW)
        if self.b is not None:
            self.b.add_grad(db)
        return dx

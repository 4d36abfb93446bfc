"""Learned positions (Gehring et al. 2017), which the paper compares with its sinusoids."""

import numpy as np
from numpy.typing import DTypeLike

from minitransformer.backend import xp
from minitransformer.checks import check_width
from minitransformer.core import Layer, Parameter
from minitransformer.functional import rows_from
from minitransformer.layers.initializers import normal


class LearnedPositions(Layer):
    """y[b, t] = x[b, t] + P[t] with a learned P (max_len, C): GPT-2, BERT, and row (E) of the paper's table 3.

    P is drawn from a normal distribution with standard deviation `std`, which should be close to that of the token
    vectors: 0.02 in GPT-2 and BERT, 1 where these are multiplied by sqrt(C). Raises ValueError for a sequence longer
    than `max_len`.
    """

    def __init__(
        self,
        max_len: int,
        d_model: int,
        *,
        std: float = 0.02,
        rng: np.random.Generator | None = None,
        dtype: DTypeLike = np.float32,
    ) -> None:
        self.P = Parameter(normal(rng, (max_len, d_model), std, dtype))

    def forward(
        self, x: xp.ndarray, rng: np.random.Generator | None = None, start: int | np.ndarray = 0
    ) -> tuple[xp.ndarray, int | np.ndarray]:
        """x (B, T, C), the first token at position `start` -> y (B, T, C). Remember which positions they were.

        For decoding, `start` may be one number for each sequence (B,).
        """
        P = self.P.data
        check_width("LearnedPositions", x, P.shape[1], P.dtype)
        return x + rows_from(P, start, x.shape[1]), start

    def backward(self, dy: xp.ndarray, start: int) -> xp.ndarray:
        """dx = dy, and dP[t] = sum_b dy[b, t], because every sequence of the batch has used P[t]."""
        _, T, _ = dy.shape
        if not self.P.frozen:
            self.P.grad[start : start + T] += dy.sum(axis=0)
        return dy

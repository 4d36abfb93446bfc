"""Positions of tokens: the layer that adds them to the token vectors (paper section 3.5)."""

import numpy as np
from numpy.typing import DTypeLike

from minitransformer.backend import to_device, xp
from minitransformer.checks import check_width
from minitransformer.core import Layer
from minitransformer.functional import rows_from, sinusoidal_positions


class PositionalEncoding(Layer):
    """y[b, t] = x[b, t] + PE[t] with the fixed sinusoids of paper section 3.5; it has no parameters.

    Raises ValueError for a sequence longer than `max_len`.
    """

    def __init__(self, max_len: int, d_model: int, *, dtype: DTypeLike = np.float32) -> None:
        self.table = to_device(sinusoidal_positions(max_len, d_model, dtype))  # (max_len, C)

    def forward(
        self, x: xp.ndarray, rng: np.random.Generator | None = None, start: int | np.ndarray = 0
    ) -> tuple[xp.ndarray, None]:
        """x (B, T, C), the first token at position `start`, a number or one for each sequence (B,) -> y (B, T, C).

        Remember nothing: the derivative of a sum with a constant is 1.
        """
        check_width("PositionalEncoding", x, self.table.shape[1], self.table.dtype)
        return x + rows_from(self.table, start, x.shape[1]), None

    def backward(self, dy: xp.ndarray, cache: None) -> xp.ndarray:
        """dx = dy."""
        return dy

"""Adding the position to each token's vector."""

import numpy as np

from minitransformer.backend import to_device
from minitransformer.checks import check_width
from minitransformer.core import Layer
from minitransformer.functional import sinusoidal_positions


class PositionalEncoding(Layer):
    """y[b, t] = x[b, t] + PE[t] with the fixed sinusoids of paper section 3.5; it learns nothing.

    Raises ValueError for a sequence longer than `max_len`.
    """

    def __init__(self, max_len, d_model, *, dtype=np.float32):
        self.table = to_device(sinusoidal_positions(max_len, d_model, dtype))  # (max_len, C)

    def forward(self, x, rng=None):
        """x (B, T, C) -> y (B, T, C). Remember nothing: the derivative of a sum with a constant is 1."""
        check_width("PositionalEncoding", x, self.table.shape[1], self.table.dtype)
        _, T, _ = x.shape
        max_len = len(self.table)
        if max_len < T:
            raise ValueError(f"the sequence is {T} tokens long, but there are only {max_len} positions")
        return x + self.table[:T], None

    def backward(self, dy, cache):
        """dx = dy."""
        return dy

"""Dropout as a layer."""

import numpy as np

from minitransformer.backend import xp
from minitransformer.checks import check_rate
from minitransformer.core import Layer
from minitransformer.functional import dropout, dropout_backward
from minitransformer.functional.dropout import DropoutCache


class Dropout(Layer):
    """Zero each entry with probability `rate`, scale up the rest; the identity without rng (`functional.dropout`).

    Raises ValueError unless 0 <= rate < 1.
    """

    def __init__(self, rate: float) -> None:
        self.rate = check_rate("dropout rate", rate)

    def forward(self, x: xp.ndarray, rng: np.random.Generator | None = None) -> tuple[xp.ndarray, DropoutCache | None]:
        """x of any shape -> y of the same shape."""
        return (x, None) if rng is None or self.rate == 0.0 else dropout(x, self.rate, rng)

    def backward(self, dy: xp.ndarray, cache: DropoutCache | None) -> xp.ndarray:
        """dy -> dx, with the mask of the forward pass."""
        return dropout_backward(dy, cache)

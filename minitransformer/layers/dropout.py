"""Dropout as a layer."""

from minitransformer.checks import check_rate
from minitransformer.core import Layer
from minitransformer.functional import dropout, dropout_backward


class Dropout(Layer):
    """Zero each entry with probability `rate`, scale up the rest; the identity without rng (`functional.dropout`)."""

    def __init__(self, rate):
        self.rate = check_rate("dropout rate", rate)

    def forward(self, x, rng=None):
        """x of any shape -> y of the same."""
        return dropout(x, self.rate, rng)

    def backward(self, dy, cache):
        """dy -> dx, with the mask of the forward pass."""
        return dropout_backward(dy, cache)

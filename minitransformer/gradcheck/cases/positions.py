"""The rows for positions: learnt vectors, rotations, and what is added to attention's scores."""

from functools import partial

import numpy as np

from minitransformer import functional as F
from minitransformer import layers as L
from minitransformer.backend import to_device
from minitransformer.core import Layer, Parameter
from minitransformer.gradcheck.cases.registry import B, C, H, S, T, draw, layer, pair, register
from minitransformer.gradcheck.check import check_gradients

F64 = {"dtype": np.float64}
BUCKETS = {"num_buckets": 6, "max_distance": 5}  # few, so that far distances share them
MAX_LEN, START = 9, S - T
KEPT = 3  # sequences, so that the gradient of each tensor is small enough to be checked entry by entry


class Weights(Layer):
    """The attention weights alone: softmax(q k^T + bias), with positions inside as attention has them.

    Queries stand at positions `start` and after; what the bias does can only be seen behind the softmax.
    """

    def __init__(self, positions, start):
        self.positions = positions
        self.start = start

    def forward(self, q, k, rng=None):
        """q (B, H, T, D), k (B, H, S, D) -> weights (B, H, T, S)."""
        q, k = self.positions.rotate(q, self.start), self.positions.rotate(k)
        scores = q @ k.swapaxes(-1, -2)
        bias = self.positions.bias(*scores.shape[2:], self.start)
        weights, _ = F.softmax(scores if bias is None else scores + bias)
        return weights, (q, k, weights)

    def backward(self, dweights, cache):
        """dweights (B, H, T, S) -> dq and dk."""
        q, k, weights = cache
        dscores = F.softmax_backward(dweights, weights)
        self.positions.bias_backward(dscores.sum(axis=0), *dscores.shape[2:], self.start)
        dq = self.positions.rotate_backward(dscores @ k, self.start)
        dk = self.positions.rotate_backward(dscores.swapaxes(-1, -2) @ q)
        return dq, dk


class At(Layer):
    """A layer that adds positions, for tokens that start at `start`."""

    def __init__(self, positions, start):
        self.positions = positions
        self.start = start

    def forward(self, x, rng=None):
        """x (B, T, C) -> y (B, T, C)."""
        return self.positions.forward(x, start=self.start)

    def backward(self, dy, cache):
        """dy (B, T, C) -> dx (B, T, C)."""
        return self.positions.backward(dy, cache)


def rotation(name, start=0, **options):
    """The check of the rotation, for tokens at positions `start` and after."""
    cos, sin = (to_device(table[start:]) for table in F.rotary_tables(start + T, C, dtype=np.float64))
    check = pair(lambda x: F.rotate(x, cos, sin), F.rotate_backward, x=draw(B, H, T, C))
    return check(name, **options)


def relative_bias(name, **options):
    """The table, here a Parameter, because the function adds to its gradient in place."""
    table = Parameter(draw(BUCKETS["num_buckets"], H))
    buckets = F.relative_buckets(T, S, **BUCKETS)

    def backward(dy, cache):
        F.relative_bias_backward(dy, cache, table.grad)

    forward = partial(F.relative_bias, buckets=buckets)
    return check_gradients(lambda: forward(table.data), backward, {}, {"table": table}, name=name, **options)


register("rotate", F.rotate, rotation)
register(f"rotate start={START}", F.rotate, partial(rotation, start=START))
register("relative_bias", F.relative_bias, relative_bias)

q, k = draw(KEPT, H, T, C), draw(KEPT, H, S, C)
MAKE = {
    L.RotaryPositions: [("", partial(L.RotaryPositions, C, MAX_LEN, **F64))],
    L.AlibiPositions: [("", partial(L.AlibiPositions, H, **F64))],
    L.RelativePositions: [
        (f" bidirectional={both}", partial(L.RelativePositions, H, bidirectional=both, **BUCKETS, **F64))
        for both in (True, False)
    ],
}
for start in (0, START):
    for cls, kinds in MAKE.items():
        for switch, make in kinds:
            check = layer(lambda make=make, start=start: Weights(make(), start), q, k)
            register(f"{cls.__name__}{switch} start={start}", cls, check)
    learned = lambda start=start: At(L.LearnedPositions(MAX_LEN, C, **F64), start)  # noqa: E731 - one line a row
    register(f"LearnedPositions start={start}", L.LearnedPositions, layer(learned, draw(B, T, C)))

"""The rows for positions: learned vectors, rotations, and what is added to attention's scores."""

from typing import Any

import numpy as np

from minitransformer import functional as F
from minitransformer import layers as L
from minitransformer.backend import to_device, xp
from minitransformer.core import Layer, Parameter
from minitransformer.gradcheck.subjects.table import Draw, Problem, layer_problem, register

BUCKETS: dict[str, Any] = {"num_buckets": 6, "max_distance": 5}  # few, so that far distances share them
START = 2  # the position of the first query, as in decoding
FEW = {"B": 3}  # sequences, so that the gradient of each tensor is small enough to be checked entry by entry


class Weights(Layer):
    """The attention weights alone: softmax(q k^T + bias), with positions inside as attention has them.

    Queries are at positions `start` and after. The effect of the bias is visible only after the softmax.
    """

    def __init__(self, positions: Any, start: int) -> None:
        self.positions = positions
        self.start = start

    def forward(self, q: xp.ndarray, k: xp.ndarray, rng: np.random.Generator | None = None) -> tuple:
        """q (B, H, T, D), k (B, H, S, D) -> weights (B, H, T, S)."""
        q, k = self.positions.rotate(q, self.start), self.positions.rotate(k)
        scores = q @ k.swapaxes(-1, -2)
        bias = self.positions.bias(*scores.shape[2:], self.start)
        weights, _ = F.softmax(scores if bias is None else scores + bias)
        return weights, (q, k, weights)

    def backward(self, dweights: xp.ndarray, cache: tuple) -> tuple:
        """dweights (B, H, T, S) -> dq and dk."""
        q, k, weights = cache
        dscores = F.softmax_backward(dweights, weights)
        self.positions.bias_backward(dscores.sum(axis=0), *dscores.shape[2:], self.start)
        dq = self.positions.rotate_backward(dscores @ k, self.start)
        dk = self.positions.rotate_backward(dscores.swapaxes(-1, -2) @ q)
        return dq, dk


class At(Layer):
    """A layer that adds positions, for tokens that start at `start`."""

    def __init__(self, positions: Any, start: int) -> None:
        self.positions = positions
        self.start = start

    def forward(self, x: xp.ndarray, rng: np.random.Generator | None = None) -> tuple:
        """x (B, T, C) -> y (B, T, C)."""
        return self.positions.forward(x, start=self.start)

    def backward(self, dy: xp.ndarray, cache: Any) -> xp.ndarray:
        """dy (B, T, C) -> dx (B, T, C)."""
        return self.positions.backward(dy, cache)


def rotate(d: Draw, start: int = 0) -> Problem:
    """The rotation, for tokens at positions `start` and after."""
    T, width = d.n.T, 2 * d.n.D  # pairs of features are rotated
    cos, sin = (to_device(table[start:]) for table in F.rotary_tables(start + T, width, dtype=d.dtype))
    inputs = {"x": d.array(d.n.B, d.n.H, T, width)}
    return Problem(lambda x: F.rotate(x, cos, sin), F.rotate_backward, inputs, {}, {})


def relative_bias(d: Draw) -> Problem:
    """The table is a Parameter here, because backward adds to its gradient in place."""
    table = Parameter(d.array(BUCKETS["num_buckets"], d.n.H))
    buckets = F.relative_buckets(d.n.T, d.n.S, **BUCKETS)

    def function():
        return F.relative_bias(table.data, buckets)

    def backward(dy, cache):
        F.relative_bias_backward(dy, cache, table.grad)

    return Problem(function, backward, {}, {}, {"table": table})


def _weights(d: Draw, positions: Layer, start: int) -> Problem:
    q, k = (d.array(d.n.B, d.n.H, length, 2 * d.n.D) for length in (d.n.T, d.n.S))
    return layer_problem(Weights(positions, start), d, {"q": q, "k": k})


def rotary(d: Draw, start: int) -> Problem:
    """Queries and keys rotated by angles."""
    return _weights(d, L.RotaryPositions(2 * d.n.D, d.n.max_len, dtype=d.dtype), start)


def alibi(d: Draw, start: int) -> Problem:
    """Scores that fall with distance."""
    return _weights(d, L.AlibiPositions(d.n.H, dtype=d.dtype), start)


def relative(d: Draw, start: int, bidirectional: bool) -> Problem:
    """A learned number for each distance."""
    return _weights(d, L.RelativePositions(d.n.H, bidirectional=bidirectional, **BUCKETS, dtype=d.dtype), start)


def learned(d: Draw, start: int) -> Problem:
    """A learned vector for each position."""
    return layer_problem(At(L.LearnedPositions(d.n.max_len, d.n.C, dtype=d.dtype), start), d, {"x": d("BTC")})


register("rotate", F.rotate, rotate)
register(f"rotate start={START}", F.rotate, rotate, start=START)
register("relative_bias", F.relative_bias, relative_bias)
for start in (0, START):
    register(f"RotaryPositions start={start}", L.RotaryPositions, rotary, lengths=FEW, start=start)
    register(f"AlibiPositions start={start}", L.AlibiPositions, alibi, lengths=FEW, start=start)
    for both in (True, False):
        row = f"RelativePositions bidirectional={both} start={start}"
        register(row, L.RelativePositions, relative, lengths=FEW, start=start, bidirectional=both)
    register(f"LearnedPositions start={start}", L.LearnedPositions, learned, start=start)

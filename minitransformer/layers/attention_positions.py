"""Positions inside attention: queries and keys are turned, or a number for each distance is added to the scores.

Both make a score depend on how far a key is from its query, and not on where the two stand.
"""

import numpy as np

from minitransformer.backend import to_device
from minitransformer.checks import check_positions, check_width
from minitransformer.core import Layer, Parameter
from minitransformer.functional import (
    alibi_bias,
    alibi_slopes,
    relative_bias,
    relative_bias_backward,
    relative_buckets,
    rotary_tables,
    rotate,
    rotate_backward,
)
from minitransformer.layers.initializers import normal


class AttentionPositions(Layer):
    """What attention asks of its positions; here, and by default, nothing happens.

    It has no forward of its own: attention calls each of the methods where it belongs. Queries stand at positions
    start, start + 1, ... and keys at 0, 1, ..., where `start` is above 0 when new tokens are decoded behind those
    whose keys are remembered. It is one number for the whole batch, also where sequences of different lengths are
    padded in front to stand side by side: what counts is how far a key is from its query.
    """

    def rotate(self, x, start=0):
        """Queries or keys x (B, H, T, D) at positions start ... start + T - 1 -> (B, H, T, D)."""
        return x

    def rotate_backward(self, dy, start=0):
        """dx from dy (B, H, T, D), with the `start` of forward."""
        return dy

    def bias(self, T, S, start=0):
        """What to add to the scores of T queries, the first at position `start`, and S keys -> (H, T, S) or None.

        It may be given out again, so nobody may write to it.
        """
        return None

    def bias_backward(self, dbias, T, S, start=0):
        """Add what is learnt from dbias (H, T, S), the sum of dscores over the batch, to the gradients."""


class RotaryPositions(AttentionPositions):
    """RoPE (Su et al. 2021): each pair of features of queries and keys is turned by an angle; see `functional.rotate`.

    It learns nothing. Raises ValueError for an odd number of features per head, and positions from `max_len` on.
    """

    def __init__(self, head_width, max_len, *, dtype=np.float32):
        cos, sin = rotary_tables(max_len, head_width, dtype=dtype)
        self.cos, self.sin = to_device(cos), to_device(sin)  # (max_len, D / 2)

    def rotate(self, x, start=0):
        """x (B, H, T, D) -> y (B, H, T, D)."""
        max_len, pairs = self.cos.shape
        check_width("RotaryPositions", x, 2 * pairs, self.cos.dtype)
        check_positions(start, x.shape[2], max_len)
        return rotate(x, *self._tables(x, start))[0]

    def rotate_backward(self, dy, start=0):
        """dy (B, H, T, D) -> dx (B, H, T, D)."""
        return rotate_backward(dy, self._tables(dy, start))

    def _tables(self, x, start):
        """The cosines and sines for the positions of x: all that `functional.rotate` remembers."""
        here = slice(start, start + x.shape[2])
        return self.cos[here], self.sin[here]


class AlibiPositions(AttentionPositions):
    """ALiBi (Press et al. 2022): scores fall with distance, for each head at its own rate; see `alibi_bias`.

    It learns nothing, and takes sequences of any length.
    """

    def __init__(self, num_heads, *, dtype=np.float32):
        alibi_slopes(num_heads)  # refuses a wrong number now, not in the first forward
        self.num_heads = num_heads
        self.dtype = dtype
        self._last = (None, None)  # the last (T, S, start) and its bias: all layers of a step ask for the same

    def bias(self, T, S, start=0):
        """The bias (H, T, S)."""
        asked, bias = self._last  # read once, as another thread may put its own here
        if asked != (T, S, start):
            bias = alibi_bias(self.num_heads, T, S, start, self.dtype)
            self._last = (T, S, start), bias
        return bias


class RelativePositions(AttentionPositions):
    """T5's relative positions (Raffel et al. 2020): a learnt number for each head and each bucket of distances.

    Near distances have a bucket each, far ones share; see `relative_buckets`. T5 has one such table for all layers of
    a stack, and no 1 / sqrt(D) in its scores.
    """

    def __init__(
        self,
        num_heads,
        *,
        bidirectional=True,
        num_buckets=32,
        max_distance=128,
        rng=None,
        dtype=np.float32,
    ):
        self.num_buckets, self.max_distance, self.bidirectional = num_buckets, max_distance, bidirectional
        self._last = (None, None)  # the last (T, S, start) and its buckets, as in AlibiPositions
        self._buckets(1, 1, 0)  # refuses wrong numbers now, not in the first forward
        self.table = Parameter(normal(rng, (num_buckets, num_heads), 0.02, dtype))

    def bias(self, T, S, start=0):
        """The bias (H, T, S)."""
        return relative_bias(self.table.data, self._buckets(T, S, start))[0]

    def bias_backward(self, dbias, T, S, start=0):
        """Add the gradient of the table."""
        relative_bias_backward(dbias, self._buckets(T, S, start), self.table.grad)

    def _buckets(self, T, S, start):
        """Which number of the table each query and key take -> (T, S) on the host."""
        asked, buckets = self._last
        if asked != (T, S, start):
            buckets = relative_buckets(T, S, self.num_buckets, self.max_distance, self.bidirectional, start)
            self._last = (T, S, start), buckets
        return buckets

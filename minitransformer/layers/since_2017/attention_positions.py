"""Positions inside attention: queries and keys are rotated, or a number for each distance is added to the scores.

Both make a score depend on the distance between key and query, not on their absolute positions.
"""

from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from minitransformer.backend import to_device, xp
from minitransformer.checks import check_positions, check_width
from minitransformer.core import Layer, Parameter
from minitransformer.functional import relative_buckets, rotary_tables
from minitransformer.functional.since_2017.alibi import alibi_bias, alibi_slopes
from minitransformer.functional.since_2017.relative import relative_bias, relative_bias_backward
from minitransformer.functional.since_2017.rotary import rotate, rotate_backward
from minitransformer.layers.initializers import normal


class AttentionPositions(Layer):
    """The interface between attention and its positions. In this base class every method does nothing.

    It has no forward of its own: attention calls the methods below. Queries are at positions start, start + 1, ...
    and keys at 0, 1, ...; `start` is above 0 in decoding, when the keys of earlier tokens are in the KV cache. It is
    one number for the whole batch, even if sequences of different lengths are padded on the left: only the distance
    between key and query counts.
    """

    def rotate(self, x: xp.ndarray, start: int = 0) -> xp.ndarray:
        """Queries or keys x (B, H, T, D) at positions start ... start + T - 1 -> (B, H, T, D)."""
        return x

    def rotate_backward(self, dy: xp.ndarray, start: int = 0) -> xp.ndarray:
        """dx from dy (B, H, T, D), with the `start` of forward."""
        return dy

    def bias(self, T: int, S: int, start: int = 0) -> xp.ndarray | None:
        """The bias to add to the scores of T queries, the first at position `start`, and S keys -> (H, T, S) or None.

        The same array may be returned again, so callers must not write to it.
        """
        return None

    def bias_backward(self, dbias: xp.ndarray, T: int, S: int, start: int = 0) -> None:
        """Add to the gradients of learned parameters, from dbias (H, T, S), the sum of dscores over the batch."""


class RotaryPositions(AttentionPositions):
    """RoPE (Su et al. 2021): each pair of features of queries and keys is rotated; see `functional.rotate`.

    It has no parameters; `base`, `factor` and `original_len` are those of `rotary_tables`. Raises ValueError for an odd
    number of features per head and for positions >= `max_len`.
    """

    def __init__(
        self,
        head_width: int,
        max_len: int,
        base: float = 10000.0,
        factor: float = 1.0,
        original_len: int | None = None,
        *,
        dtype: DTypeLike = np.float32,
    ) -> None:
        cos, sin = rotary_tables(max_len, head_width, base, dtype, factor, original_len)
        self.cos, self.sin = to_device(cos), to_device(sin)  # (max_len, D / 2)

    def rotate(self, x: xp.ndarray, start: int = 0) -> xp.ndarray:
        """x (B, H, T, D) -> y (B, H, T, D)."""
        max_len, pairs = self.cos.shape
        check_width("RotaryPositions", x, 2 * pairs, self.cos.dtype)
        check_positions(start, x.shape[2], max_len)
        return rotate(x, *self._tables(x, start))[0]

    def rotate_backward(self, dy: xp.ndarray, start: int = 0) -> xp.ndarray:
        """dy (B, H, T, D) -> dx (B, H, T, D)."""
        return rotate_backward(dy, self._tables(dy, start))

    def _tables(self, x, start):
        """The cosines and sines for the positions of x, which are also the cache of `functional.rotate`."""
        here = slice(start, start + x.shape[2])
        return self.cos[here], self.sin[here]


class AlibiPositions(AttentionPositions):
    """ALiBi (Press et al. 2022): scores fall with distance, at a different rate for each head; see `alibi_bias`.

    It has no parameters and no limit on the length. Raises ValueError for less than one head.
    """

    def __init__(self, num_heads: int, *, dtype: DTypeLike = np.float32) -> None:
        alibi_slopes(num_heads)  # raises now for a wrong number, not in the first forward
        self.num_heads = num_heads
        self.dtype = dtype
        self._last: Any = (None, None)  # the last (T, S, start) and its bias, which all layers of a step share

    def bias(self, T: int, S: int, start: int = 0) -> xp.ndarray:
        """The bias (H, T, S)."""
        asked, bias = self._last  # read once: another thread may replace it
        if asked != (T, S, start):
            bias = alibi_bias(self.num_heads, T, S, start, self.dtype)
            self._last = (T, S, start), bias
        return bias


class RelativePositions(AttentionPositions):
    """T5's relative positions (Raffel et al. 2020): a learned number for each head and each bucket of distances.

    Short distances have a bucket each, long ones share buckets; see `relative_buckets`. T5 has one such table for all
    layers of a stack, and no 1 / sqrt(D) in its scores. Raises ValueError as `relative_buckets` does.
    """

    def __init__(
        self,
        num_heads: int,
        *,
        bidirectional: bool = True,
        num_buckets: int = 32,
        max_distance: int = 128,
        rng: np.random.Generator | None = None,
        dtype: DTypeLike = np.float32,
    ) -> None:
        self.num_buckets, self.max_distance, self.bidirectional = num_buckets, max_distance, bidirectional
        self._last: Any = (None, None)  # the last (T, S, start) and its buckets, as in AlibiPositions
        self._buckets(1, 1, 0)  # raises now for wrong numbers, not in the first forward
        self.table = Parameter(normal(rng, (num_buckets, num_heads), 0.02, dtype))

    def bias(self, T: int, S: int, start: int = 0) -> xp.ndarray:
        """The bias (H, T, S)."""
        return relative_bias(self.table.data, self._buckets(T, S, start))[0]

    def bias_backward(self, dbias: xp.ndarray, T: int, S: int, start: int = 0) -> None:
        """Add the gradient of the table (num_buckets, H), from dbias (H, T, S)."""
        if not self.table.frozen:
            relative_bias_backward(dbias, self._buckets(T, S, start), self.table.grad)

    def _buckets(self, T, S, start):
        """Which row of the table each pair of query and key uses -> (T, S) on the host."""
        asked, buckets = self._last
        if asked != (T, S, start):
            buckets = relative_buckets(T, S, self.num_buckets, self.max_distance, self.bidirectional, start)
            self._last = (T, S, start), buckets
        return buckets

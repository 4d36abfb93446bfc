"""Multi-head attention (paper section 3.2.2): within one sequence, and from one sequence to another.

    MultiHead(Q, K, V) = Concat(head_1, ..., head_h) W^O        head_i = Attention(Q W_i^Q, K W_i^K, V W_i^V)

The per-head matrices W_i^Q (C, D) of the paper, with D = C / H, are side by side in one W^Q (C, C): columns
i D ... (i + 1) D - 1 belong to head i. So the number of parameters does not depend on the number of heads.

Grouped queries, heads of other widths, positions inside attention and other kinds of attention came later: see
since_2017/attention.py.
"""

import itertools
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from minitransformer.backend import xp
from minitransformer.checks import check_heads, check_rate
from minitransformer.core import Layer
from minitransformer.functional import (
    merge_heads,
    scaled_dot_product_attention,
    scaled_dot_product_attention_backward,
    split_heads,
)
from minitransformer.functional.linear import LinearCache
from minitransformer.layers.linear import Linear


class SelfAttentionCache(NamedTuple):
    """The cache of `SelfAttention`."""

    qkv: LinearCache
    attention: Any  # an AttentionCache, or that of another kind of attention
    output: LinearCache


class CrossAttentionCache(NamedTuple):
    """The cache of `CrossAttention`."""

    q: LinearCache
    kv: LinearCache
    attention: Any
    output: LinearCache


def parts(x: xp.ndarray, widths: Sequence[int]) -> list[xp.ndarray]:
    """x (..., the sum of the widths) -> views (..., width): `xp.split` without its cost on small arrays."""
    ends = list(itertools.accumulate(widths))
    return [x[..., end - width : end] for width, end in zip(widths, ends, strict=True)]


class FullAttention:
    """Equation 1, in which each query looks at each key that its mask allows. Other kinds can take its place."""

    def forward(
        self, q: xp.ndarray, k: xp.ndarray, v: xp.ndarray, allowed: xp.ndarray | None = None, **options: Any
    ) -> tuple[xp.ndarray, Any]:
        """q (B, H, T, D), k and v (B, H, S, D), allowed broadcastable to (B, H, T, S) -> y (B, H, T, D).

        The options are those of `scaled_dot_product_attention`.
        """
        return scaled_dot_product_attention(q, k, v, allowed, **options)

    def backward(self, dy: xp.ndarray, cache: Any) -> tuple[xp.ndarray, xp.ndarray, xp.ndarray, xp.ndarray | None]:
        """(dq, dk, dv, dbias) from dy (B, H, T, D); dbias is None, as long as there is no bias."""
        return scaled_dot_product_attention_backward(dy, cache)


class MultiHeadAttention(Layer):
    """What self- and cross-attention share: from projected q, k, v to the heads' merged output, and back."""

    output: Linear
    kind: Any  # a FullAttention, or another kind of attention

    def __init__(self, d_model: int, num_heads: int, dropout_rate: float) -> None:
        check_heads(d_model, num_heads)
        self.num_heads = num_heads
        self.widths = (d_model, d_model, d_model)  # of q, k and v
        self.kind = FullAttention()
        self.dropout_rate = check_rate("attention dropout rate", dropout_rate)

    def _attend(self, q, k, v, allowed, rng):
        """q (B, T, C), k and v (B, S, C) -> y (B, T, C): each head attends, then they are side by side again."""
        q, k, v = self._split(q, k, v)
        y, cache = self.kind.forward(q, k, v, allowed, dropout_rate=self.dropout_rate, rng=rng)
        return merge_heads(y), cache

    def _split(self, q, k, v):
        """q (B, T, C), k and v (B, S, C) -> the heads, q (B, H, T, D), k and v (B, H, S, D)."""
        return split_heads(q, self.num_heads), split_heads(k, self.num_heads), split_heads(v, self.num_heads)

    def _attend_backward(self, dy, cache):
        """dy (B, T, C) -> dq (B, H, T, D), dk and dv (B, H, S, D)."""
        dq, dk, dv, _ = self.kind.backward(split_heads(dy, self.num_heads), cache)
        return dq, dk, dv


class SelfAttention(MultiHeadAttention):
    """Queries, keys and values from the same sequence, projected by one matrix W^Q | W^K | W^V (C, 3 C).

    The third of the bias that belongs to the keys has a gradient of exactly 0: adding one vector to all keys adds the
    same number to all scores of a query, and the softmax does not change. It is kept because PyTorch has it. Raises
    ValueError unless `num_heads` divides `d_model`, and for a dropout rate outside [0, 1).
    """

    qkv: Any  # a Linear, or another layer from x to q | k | v

    def __init__(
        self,
        d_model: int,
        num_heads: int,
        *,
        bias: bool = True,
        dropout_rate: float = 0.0,
        rng: np.random.Generator | None = None,
        dtype: DTypeLike = np.float32,
    ) -> None:
        super().__init__(d_model, num_heads, dropout_rate)
        self.qkv = Linear(d_model, d_model, blocks=3, bias=bias, rng=rng, dtype=dtype)
        self.output = Linear(d_model, d_model, bias=bias, rng=rng, dtype=dtype)

    def forward(
        self, x: xp.ndarray, allowed: xp.ndarray | None = None, rng: np.random.Generator | None = None
    ) -> tuple[xp.ndarray, SelfAttentionCache]:
        """x (B, T, C), allowed broadcastable to (B, H, T, T), True = may attend -> y (B, T, C)."""
        qkv, cache_qkv = self.qkv.forward(x)  # (B, T, 3 C)
        q, k, v = parts(qkv, self.widths)
        merged, cache_attention = self._attend(q, k, v, allowed, rng)
        y, cache_output = self.output.forward(merged)
        return y, SelfAttentionCache(cache_qkv, cache_attention, cache_output)

    def backward(self, dy: xp.ndarray, cache: SelfAttentionCache) -> xp.ndarray:
        """dy (B, T, C) -> dx (B, T, C)."""
        dmerged = self.output.backward(dy, cache.output)
        dq, dk, dv = self._attend_backward(dmerged, cache.attention)
        return self.qkv.backward(merge_heads(dq, dk, dv), cache.qkv)


class CrossAttention(MultiHeadAttention):
    """Queries from the decoder, keys and values from the encoder's output, the memory (paper section 3.2.3).

    The two projections have the matrices W^Q (C, C) and W^K | W^V (C, 2 C). Raises ValueError as `SelfAttention` does.
    """

    def __init__(
        self,
        d_model: int,
        num_heads: int,
        *,
        bias: bool = True,
        dropout_rate: float = 0.0,
        rng: np.random.Generator | None = None,
        dtype: DTypeLike = np.float32,
    ) -> None:
        super().__init__(d_model, num_heads, dropout_rate)
        self.q = Linear(d_model, d_model, bias=bias, rng=rng, dtype=dtype)
        self.kv = Linear(d_model, d_model, blocks=2, bias=bias, rng=rng, dtype=dtype)
        self.output = Linear(d_model, d_model, bias=bias, rng=rng, dtype=dtype)

    def forward(
        self,
        x: xp.ndarray,
        memory: xp.ndarray,
        allowed: xp.ndarray | None = None,
        rng: np.random.Generator | None = None,
    ) -> tuple[xp.ndarray, CrossAttentionCache]:
        """x (B, T, C), memory (B, S, C), allowed broadcastable to (B, H, T, S), True = may attend -> y (B, T, C)."""
        q, cache_q = self.q.forward(x)
        kv, cache_kv = self.kv.forward(memory)  # (B, S, 2 C)
        k, v = parts(kv, self.widths[1:])
        merged, cache_attention = self._attend(q, k, v, allowed, rng)
        y, cache_output = self.output.forward(merged)
        return y, CrossAttentionCache(cache_q, cache_kv, cache_attention, cache_output)

    def backward(self, dy: xp.ndarray, cache: CrossAttentionCache) -> tuple[xp.ndarray, xp.ndarray]:
        """dy (B, T, C) -> dx (B, T, C) and dmemory (B, S, C)."""
        dmerged = self.output.backward(dy, cache.output)
        dq, dk, dv = self._attend_backward(dmerged, cache.attention)
        dx = self.q.backward(merge_heads(dq), cache.q)
        dmemory = self.kv.backward(merge_heads(dk, dv), cache.kv)
        return dx, dmemory

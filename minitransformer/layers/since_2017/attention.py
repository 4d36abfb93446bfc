"""Attention with what came after the paper: queries that share keys, heads of any width, positions inside, all kinds.

The layers are those of layers/attention.py, with matrices of other widths, and more between q, k, v and the output.
"""

from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from minitransformer.backend import xp
from minitransformer.checks import check_heads, check_integer, check_rate
from minitransformer.config.transformer import check_kv_heads
from minitransformer.functional import merge_heads, split_heads
from minitransformer.layers.attention import CrossAttention, FullAttention, MultiHeadAttention, SelfAttention, parts
from minitransformer.layers.linear import Linear
from minitransformer.layers.since_2017.attention_kinds import (
    CausalAttention,
    IncrementalAttention,
    LinearAttention,
    attend_incrementally,
)
from minitransformer.layers.since_2017.attention_positions import AttentionPositions
from minitransformer.layers.since_2017.kv_cache import KVCache


class GeneralAttention(MultiHeadAttention):
    """What general self- and cross-attention share.

    `num_kv_heads` is the number of heads of keys and values, G in the shapes; None means one for each head of queries,
    as in the paper. `positions` is an `AttentionPositions` or None (the paper: positions are added to the input).
    `scale` multiplies the scores; None means the paper's 1 / sqrt(D). `kind` is one of attention_kinds.py. `d_k` is the
    number of features of a query and of a key, `d_v` that of a value; None means D = C / H.
    """

    def __init__(
        self,
        d_model: int,
        num_heads: int,
        *,
        num_kv_heads: int | None = None,
        dropout_rate: float = 0.0,
        positions: AttentionPositions | None = None,
        scale: float | None = None,
        kind: FullAttention | LinearAttention | None = None,
        d_k: int | None = None,
        d_v: int | None = None,
    ) -> None:
        if d_k is None or d_v is None:
            check_heads(d_model, num_heads)
        self.num_heads = num_heads
        self.num_kv_heads = num_heads if num_kv_heads is None else num_kv_heads
        check_kv_heads(num_heads, self.num_kv_heads)
        self.d_k, self.d_v = (
            d_model // num_heads if features is None else check_integer(name, features, least=1)
            for name, features in (("d_k", d_k), ("d_v", d_v))
        )
        self.kind = kind or IncrementalAttention()
        if self.d_k != self.d_v and type(self.kind) not in (CausalAttention, IncrementalAttention):
            raise ValueError(f"d_k = {self.d_k} other than d_v = {self.d_v} needs full attention")
        self.widths = (num_heads * self.d_k, self.num_kv_heads * self.d_k, self.num_kv_heads * self.d_v)  # of q, k, v
        self.dropout_rate = check_rate("attention dropout rate", dropout_rate)
        self.positions = positions
        self.scale = scale

    def _attend(self, q, k, v, allowed, rng):
        """q (B, T, H d_k), k (B, S, G d_k) and v (B, S, G d_v) -> y (B, T, H d_v)."""
        q, k, v = self._split(q, k, v)
        bias = None
        if self.positions is not None:
            q, k = self.positions.rotate(q), self.positions.rotate(k)
            bias = self.positions.bias(*self._bias_of(q.shape[2], k.shape[2]))
        options = {"dropout_rate": self.dropout_rate, "rng": rng, "bias": bias, "scale": self.scale}
        y, cache = self.kind.forward(q, k, v, allowed, **options)
        return merge_heads(y), cache

    def _bias_of(self, T, S):
        """For which T, S and start the kind of attention wants the bias: of all pairs, or of all distances.

        A query at position T - 1 and T + S - 1 keys have the distances s - t from 1 - T to S - 1, each of them once.
        """
        by_distance = getattr(self.kind, "takes_bias_by_distance", False)
        return (1, T + S - 1, T - 1) if by_distance else (T, S, 0)

    def _split(self, q, k, v):
        """As in the base class, with G heads of keys and values."""
        return split_heads(q, self.num_heads), split_heads(k, self.num_kv_heads), split_heads(v, self.num_kv_heads)

    def _attend_backward(self, dy, cache):
        """dy (B, T, H d_v) -> dq (B, H, T, d_k), dk (B, G, S, d_k) and dv (B, G, S, d_v)."""
        dq, dk, dv, dbias = self.kind.backward(split_heads(dy, self.num_heads), cache)
        if self.positions is not None:
            if dbias is not None:
                self.positions.bias_backward(dbias, *self._bias_of(dq.shape[2], dk.shape[2]))
            dq, dk = self.positions.rotate_backward(dq), self.positions.rotate_backward(dk)
        return dq, dk, dv


class GeneralSelfAttention(GeneralAttention, SelfAttention):
    """`SelfAttention` with the options of `GeneralAttention`. W^Q | W^K | W^V is (C, H d_k + G d_k + G d_v).

    `qkv_bias` is the bias of this matrix if it differs from the output's (Qwen2). Raises ValueError as `SelfAttention`
    does, unless `num_kv_heads` divides `num_heads`, and for d_k other than d_v unless the attention is full.
    """

    def __init__(
        self,
        d_model: int,
        num_heads: int,
        *,
        bias: bool = True,
        qkv_bias: bool | None = None,
        rng: np.random.Generator | None = None,
        dtype: DTypeLike = np.float32,
        **options: Any,
    ) -> None:
        GeneralAttention.__init__(self, d_model, num_heads, **options)
        # with grouped queries or other widths, the initial weights are those of one matrix
        one, blocks = (d_model, 3) if set(self.widths) == {d_model} else (sum(self.widths), 1)
        has_bias = bias if qkv_bias is None else qkv_bias
        self.qkv = Linear(d_model, one, blocks=blocks, bias=has_bias, rng=rng, dtype=dtype)
        self.output = Linear(num_heads * self.d_v, d_model, bias=bias, rng=rng, dtype=dtype)

    def make_kv_cache(self, batch: int, max_len: int) -> Any:
        """What decoding keeps of the tokens of `batch` sequences of at most `max_len` tokens."""
        shape, dtype = (batch, self.num_kv_heads, max_len, self.d_k), self.output.W.data.dtype
        return self.kind.make_kv_cache(shape, dtype) if self.d_k == self.d_v else KVCache(shape, dtype, self.d_v)

    def extend(self, x: xp.ndarray, kv_cache: Any, allowed: xp.ndarray | None = None) -> xp.ndarray:
        """As `extend_sublayer`, with a `kv_cache` from `make_kv_cache`."""
        start = kv_cache.length
        q, k, v = self._split(*parts(self.qkv(x), self.widths))  # (B, H, n, D) and (B, G, n, D)
        bias = None
        if self.positions is not None:
            q, k = self.positions.rotate(q, start), self.positions.rotate(k, start)
            bias = self.positions.bias(q.shape[2], start + q.shape[2], start)
        y = self.kind.extend(q, k, v, kv_cache, allowed, bias=bias, scale=self.scale)
        return self.output(merge_heads(y))


class GeneralCrossAttention(GeneralAttention, CrossAttention):
    """`CrossAttention` with options of `GeneralAttention`: W^Q is (C, H d_k), W^K | W^V (C, G d_k + G d_v)."""

    def __init__(
        self,
        d_model: int,
        num_heads: int,
        *,
        bias: bool = True,
        rng: np.random.Generator | None = None,
        dtype: DTypeLike = np.float32,
        **options: Any,
    ) -> None:
        GeneralAttention.__init__(self, d_model, num_heads, positions=None, **options)
        self.q = Linear(d_model, self.widths[0], bias=bias, rng=rng, dtype=dtype)
        one, blocks = (self.widths[2], 2) if self.d_k == self.d_v else (sum(self.widths[1:]), 1)
        self.kv = Linear(d_model, one, blocks=blocks, bias=bias, rng=rng, dtype=dtype)
        self.output = Linear(num_heads * self.d_v, d_model, bias=bias, rng=rng, dtype=dtype)

    def extend(self, x: xp.ndarray, kv_cache: Any, allowed: xp.ndarray | None = None) -> xp.ndarray:
        """As `extend_sublayer`."""
        q = split_heads(self.q(x), self.num_heads)
        y = attend_incrementally(q, kv_cache.k, kv_cache.v, allowed, None, self.scale)
        return self.output(merge_heads(y))


def generalized(layer: SelfAttention) -> GeneralSelfAttention:
    """Self-attention as a `GeneralSelfAttention` with the same parameters."""
    if isinstance(layer, GeneralSelfAttention):
        return layer
    kind = None if type(layer.kind) is FullAttention else layer.kind
    general = GeneralSelfAttention(layer.widths[0], layer.num_heads, dropout_rate=layer.dropout_rate, kind=kind)
    general.qkv, general.output = layer.qkv, layer.output
    return general

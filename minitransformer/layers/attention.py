"""Multi-head attention (paper section 3.2.2): within one sequence, and from one sequence to another.

    MultiHead(Q, K, V) = Concat(head_1, ..., head_h) W^O        head_i = Attention(Q W_i^Q, K W_i^K, V W_i^V)

The per-head matrices W_i^Q (C, D) of the paper are side by side in one W^Q (C, C): columns i D ... (i + 1) D - 1 belong
to head i. So the number of parameters does not depend on the number of heads, unless queries and keys (d_k) or values
(d_v) are given another number of features than D = C / H.
"""

import itertools
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from minitransformer.backend import xp
from minitransformer.checks import check_heads, check_integer, check_kv_heads, check_rate
from minitransformer.core import Layer
from minitransformer.functional import merge_heads, split_heads
from minitransformer.functional.attention import AttentionCache
from minitransformer.functional.linear import LinearCache
from minitransformer.functional.since_2017.linear_attention import LinearAttentionCache
from minitransformer.functional.since_2017.tiles import TiledAttentionCache
from minitransformer.layers.linear import Linear
from minitransformer.layers.since_2017.attention_kinds import FullAttention, LinearAttention, attend_incrementally
from minitransformer.layers.since_2017.attention_positions import AttentionPositions
from minitransformer.layers.since_2017.kv_cache import KVCache


class SelfAttentionCache(NamedTuple):
    """The cache of `SelfAttention`."""

    qkv: LinearCache
    attention: AttentionCache | TiledAttentionCache | LinearAttentionCache
    output: LinearCache


class CrossAttentionCache(NamedTuple):
    """The cache of `CrossAttention`."""

    q: LinearCache
    kv: LinearCache
    attention: AttentionCache | TiledAttentionCache | LinearAttentionCache
    output: LinearCache


def parts(x: xp.ndarray, widths: Sequence[int]) -> list[xp.ndarray]:
    """x (..., the sum of the widths) -> views (..., width): `xp.split` without its cost on small arrays."""
    ends = list(itertools.accumulate(widths))
    return [x[..., end - width : end] for width, end in zip(widths, ends, strict=True)]


class MultiHeadAttention(Layer):
    """What self- and cross-attention share: from projected q, k, v to the heads' merged output, and back.

    `num_kv_heads` is the number of heads of keys and values, G in the shapes; None means one for each head of queries,
    as in the paper. `positions` is an `AttentionPositions` or None (the paper: positions are added to the input).
    `scale` multiplies the scores; None means the paper's 1 / sqrt(D). `kind` is one of attention_kinds.py. `d_k` is the
    number of features of a query and of a key, `d_v` that of a value; None means D = C / H.
    """

    output: Linear

    def __init__(
        self,
        d_model: int,
        num_heads: int,
        num_kv_heads: int | None,
        dropout_rate: float,
        positions: AttentionPositions | None,
        scale: float | None,
        kind: FullAttention | LinearAttention,
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
        if self.d_k != self.d_v and type(kind) is not FullAttention:
            raise ValueError(f"d_k = {self.d_k} other than d_v = {self.d_v} needs full attention")
        self.widths = (num_heads * self.d_k, self.num_kv_heads * self.d_k, self.num_kv_heads * self.d_v)  # of q, k, v
        self.kind = kind
        self.dropout_rate = check_rate("attention dropout rate", dropout_rate)
        self.positions = positions
        self.scale = scale

    def _attend(self, q, k, v, allowed, rng):
        """q (B, T, C), k and v (B, S, G D) -> y (B, T, C)."""
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
        return (1, T + S - 1, T - 1) if self.kind.takes_bias_by_distance else (T, S, 0)

    def _split(self, q, k, v):
        """q (B, T, C), k and v (B, S, G D) -> the heads, q (B, H, T, D), k and v (B, G, S, D)."""
        return split_heads(q, self.num_heads), split_heads(k, self.num_kv_heads), split_heads(v, self.num_kv_heads)

    def _attend_backward(self, dy, cache):
        """dy (B, T, C) -> dq (B, H, T, D), dk and dv (B, G, S, D)."""
        dq, dk, dv, dbias = self.kind.backward(split_heads(dy, self.num_heads), cache)
        if self.positions is not None:
            if dbias is not None:
                self.positions.bias_backward(dbias, *self._bias_of(dq.shape[2], dk.shape[2]))
            dq, dk = self.positions.rotate_backward(dq), self.positions.rotate_backward(dk)
        return dq, dk, dv


class SelfAttention(MultiHeadAttention):
    """Queries, keys and values from the same sequence, projected by one matrix W^Q | W^K | W^V (C, C + 2 G D).

    With d_k and d_v it is (C, H d_k + G d_k + G d_v). `qkv_bias` is their bias if it differs from the output's (Qwen2).

    The third of the bias that belongs to the keys has a gradient of exactly 0: adding one vector to all keys adds the
    same number to all scores of a query, and the softmax does not change. It is kept because PyTorch has it. Raises
    ValueError unless `num_heads` divides `d_model`, and for a dropout rate outside [0, 1).
    """

    qkv: Any  # a Linear, or one of qk_norm.py

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
        bias: bool = True,
        qkv_bias: bool | None = None,
        d_k: int | None = None,
        d_v: int | None = None,
        rng: np.random.Generator | None = None,
        dtype: DTypeLike = np.float32,
    ) -> None:
        kind = kind or FullAttention()
        super().__init__(d_model, num_heads, num_kv_heads, dropout_rate, positions, scale, kind, d_k, d_v)
        # with grouped queries or other widths, the initial weights are those of one matrix
        one, blocks = (d_model, 3) if set(self.widths) == {d_model} else (sum(self.widths), 1)
        has_bias = bias if qkv_bias is None else qkv_bias
        self.qkv = Linear(d_model, one, blocks=blocks, bias=has_bias, rng=rng, dtype=dtype)
        self.output = Linear(num_heads * self.d_v, d_model, bias=bias, rng=rng, dtype=dtype)

    def forward(
        self, x: xp.ndarray, allowed: xp.ndarray | None = None, rng: np.random.Generator | None = None
    ) -> tuple[xp.ndarray, SelfAttentionCache]:
        """x (B, T, C), allowed broadcastable to (B, H, T, T), True = may attend -> y (B, T, C)."""
        qkv, cache_qkv = self.qkv.forward(x)  # (B, T, C + 2 G D)
        q, k, v = parts(qkv, self.widths)
        merged, cache_attention = self._attend(q, k, v, allowed, rng)
        y, cache_output = self.output.forward(merged)
        return y, SelfAttentionCache(cache_qkv, cache_attention, cache_output)

    def backward(self, dy: xp.ndarray, cache: SelfAttentionCache) -> xp.ndarray:
        """dy (B, T, C) -> dx (B, T, C)."""
        dmerged = self.output.backward(dy, cache.output)
        dq, dk, dv = self._attend_backward(dmerged, cache.attention)
        return self.qkv.backward(merge_heads(dq, dk, dv), cache.qkv)

    def make_kv_cache(self, batch: int, max_len: int) -> Any:
        """What decoding keeps of the tokens of `batch` sequences of at most `max_len` tokens."""
        shape, dtype = (batch, self.num_kv_heads, max_len, self.d_k), self.output.W.data.dtype
        return self.kind.make_kv_cache(shape, dtype) if self.d_k == self.d_v else KVCache(shape, dtype, self.d_v)

    def extend(self, x: xp.ndarray, kv_cache: Any, allowed: xp.ndarray | None = None) -> xp.ndarray:
        """n new tokens x (B, n, C), in decoding -> y (B, n, C). Appends them to `kv_cache`, from `make_kv_cache`.

        allowed is broadcastable to (B, H, n, S), where S is the number of tokens in the cache afterwards. Raises
        ValueError if the cache is too short.
        """
        start = kv_cache.length
        q, k, v = self._split(*parts(self.qkv(x), self.widths))  # (B, H, n, D) and (B, G, n, D)
        bias = None
        if self.positions is not None:
            q, k = self.positions.rotate(q, start), self.positions.rotate(k, start)
            bias = self.positions.bias(q.shape[2], start + q.shape[2], start)
        y = self.kind.extend(q, k, v, kv_cache, allowed, bias=bias, scale=self.scale)
        return self.output(merge_heads(y))


class CrossAttention(MultiHeadAttention):
    """Queries from the decoder, keys and values from the encoder's output, the memory (paper section 3.2.3).

    The two projections have the matrices W^Q (C, C) and W^K | W^V (C, 2 G D). Raises ValueError as
    `SelfAttention` does.
    """

    def __init__(
        self,
        d_model: int,
        num_heads: int,
        *,
        num_kv_heads: int | None = None,
        dropout_rate: float = 0.0,
        scale: float | None = None,
        kind: FullAttention | None = None,
        bias: bool = True,
        d_k: int | None = None,
        d_v: int | None = None,
        rng: np.random.Generator | None = None,
        dtype: DTypeLike = np.float32,
    ) -> None:
        kind = kind or FullAttention()
        super().__init__(d_model, num_heads, num_kv_heads, dropout_rate, None, scale, kind, d_k, d_v)
        self.q = Linear(d_model, self.widths[0], bias=bias, rng=rng, dtype=dtype)
        if self.d_k == self.d_v:
            self.kv = Linear(d_model, self.widths[2], blocks=2, bias=bias, rng=rng, dtype=dtype)
        else:
            self.kv = Linear(d_model, sum(self.widths[1:]), bias=bias, rng=rng, dtype=dtype)
        self.output = Linear(num_heads * self.d_v, d_model, bias=bias, rng=rng, dtype=dtype)

    def forward(
        self,
        x: xp.ndarray,
        memory: xp.ndarray,
        allowed: xp.ndarray | None = None,
        rng: np.random.Generator | None = None,
    ) -> tuple[xp.ndarray, CrossAttentionCache]:
        """x (B, T, C), memory (B, S, C), allowed broadcastable to (B, H, T, S), True = may attend -> y (B, T, C)."""
        q, cache_q = self.q.forward(x)
        kv, cache_kv = self.kv.forward(memory)  # (B, S, 2 G D)
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

    def read(self, memory: xp.ndarray) -> KVCache:
        """The keys and values of the memory (B, S, C), computed once for all tokens that will be decoded -> KVCache."""
        k, v = (split_heads(x, self.num_kv_heads) for x in parts(self.kv(memory), self.widths[1:]))
        kv_cache = KVCache(k.shape, memory.dtype, self.d_v)
        kv_cache.append(k, v)
        return kv_cache

    def extend(self, x: xp.ndarray, kv_cache: KVCache, allowed: xp.ndarray | None = None) -> xp.ndarray:
        """n new tokens x (B, n, C), in decoding -> y (B, n, C). They attend to the `kv_cache` that `read` returned."""
        q = split_heads(self.q(x), self.num_heads)
        y = attend_incrementally(q, kv_cache.k, kv_cache.v, allowed, None, self.scale)
        return self.output(merge_heads(y))

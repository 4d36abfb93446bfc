"""Multi-head attention (paper section 3.2.2): within one sequence, and from one sequence to another.

    MultiHead(Q, K, V) = Concat(head_1, ..., head_h) W^O        head_i = Attention(Q W_i^Q, K W_i^K, V W_i^V)

The per-head matrices W_i^Q (C, D) of the paper stand side by side in one W^Q (C, C): the columns of head i are its
i-th run of D. So the number of parameters does not depend on the number of heads.
"""

from typing import NamedTuple

import numpy as np

from minitransformer.checks import check_heads, check_rate
from minitransformer.core import Layer
from minitransformer.functional import (
    merge_heads,
    scaled_dot_product_attention,
    scaled_dot_product_attention_backward,
    split_heads,
)
from minitransformer.layers.kv_cache import KVCache
from minitransformer.layers.linear import Linear


class SelfAttentionCache(NamedTuple):
    """What `SelfAttention` remembers."""

    qkv: object
    attention: object
    output: object


class CrossAttentionCache(NamedTuple):
    """What `CrossAttention` remembers."""

    q: object
    kv: object
    attention: object
    output: object


def parts(x, count):
    """The parts of x (..., count C), views (..., C): `xp.split(x, count, axis=-1)` without its cost on small arrays."""
    C = x.shape[-1] // count
    return [x[..., i * C : (i + 1) * C] for i in range(count)]


class MultiHeadAttention(Layer):
    """What self- and cross-attention share: from projected q, k, v to the heads' merged output, and back.

    `positions` is an `AttentionPositions` or None (the paper: positions are in the input). `scale` multiplies the
    scores; None is the paper's 1 / sqrt(D).
    """

    def __init__(self, num_heads, dropout_rate, positions, scale):
        self.num_heads = num_heads
        self.dropout_rate = check_rate("attention dropout rate", dropout_rate)
        self.positions = positions
        self.scale = scale

    def _attend(self, q, k, v, allowed, rng):
        """q (B, T, C), k and v (B, S, C) -> y (B, T, C)."""
        q, k, v = (split_heads(x, self.num_heads) for x in (q, k, v))  # (B, H, T, D) and (B, H, S, D)
        bias = None
        if self.positions is not None:
            q, k = self.positions.rotate(q), self.positions.rotate(k)
            bias = self.positions.bias(q.shape[2], k.shape[2])  # (H, T, S) or None
        y, cache = scaled_dot_product_attention(q, k, v, allowed, self.dropout_rate, rng, bias, self.scale)
        return merge_heads(y), cache

    def _attend_backward(self, dy, cache):
        """dy (B, T, C) -> dq (B, H, T, D), dk and dv (B, H, S, D)."""
        dq, dk, dv, dbias = scaled_dot_product_attention_backward(split_heads(dy, self.num_heads), cache)
        if self.positions is not None:
            if dbias is not None:
                self.positions.bias_backward(dbias, dq.shape[2], dk.shape[2])
            dq, dk = self.positions.rotate_backward(dq), self.positions.rotate_backward(dk)
        return dq, dk, dv


class SelfAttention(MultiHeadAttention):
    """Queries, keys and values all from the same sequence, projected by one matrix W^Q | W^K | W^V (C, 3C).

    The key's third of the bias has gradient exactly 0: adding one vector to all keys adds the same number to all
    scores of a query, which the softmax does not see. It is kept because PyTorch has it.
    """

    def __init__(
        self,
        d_model,
        num_heads,
        *,
        dropout_rate=0.0,
        positions=None,
        scale=None,
        bias=True,
        rng=None,
        dtype=np.float32,
    ):
        check_heads(d_model, num_heads)
        super().__init__(num_heads, dropout_rate, positions, scale)
        self.qkv = Linear(d_model, d_model, blocks=3, bias=bias, rng=rng, dtype=dtype)
        self.output = Linear(d_model, d_model, bias=bias, rng=rng, dtype=dtype)

    def forward(self, x, allowed=None, rng=None):
        """x (B, T, C), allowed broadcastable to (B, H, T, T), True = may attend -> y (B, T, C)."""
        qkv, cache_qkv = self.qkv.forward(x)  # (B, T, 3C)
        q, k, v = parts(qkv, 3)
        merged, cache_attention = self._attend(q, k, v, allowed, rng)
        y, cache_output = self.output.forward(merged)
        return y, SelfAttentionCache(cache_qkv, cache_attention, cache_output)

    def backward(self, dy, cache):
        """dy (B, T, C) -> dx (B, T, C)."""
        dmerged = self.output.backward(dy, cache.output)
        dq, dk, dv = self._attend_backward(dmerged, cache.attention)
        return self.qkv.backward(merge_heads(dq, dk, dv), cache.qkv)

    def extend(self, x, kv_cache, allowed=None):
        """Outputs y (B, n, C) for n new tokens x (B, n, C), in decoding: their keys and values join `kv_cache`.

        allowed is broadcastable to (B, H, n, S), with S the tokens in the cache afterwards.
        """
        start = kv_cache.length
        q, k, v = (split_heads(part, self.num_heads) for part in parts(self.qkv(x), 3))  # (B, H, n, D)
        bias = None
        if self.positions is not None:
            q, k = self.positions.rotate(q, start), self.positions.rotate(k, start)
            bias = self.positions.bias(q.shape[2], start + q.shape[2], start)
        y, _ = scaled_dot_product_attention(q, *kv_cache.append(k, v), allowed, bias=bias, scale=self.scale)
        return self.output(merge_heads(y))


class CrossAttention(MultiHeadAttention):
    """Queries from the decoder, keys and values from the encoder's output, the memory (paper section 3.2.3).

    The two projections have W^Q (C, C) and W^K | W^V (C, 2C).
    """

    def __init__(self, d_model, num_heads, *, dropout_rate=0.0, scale=None, bias=True, rng=None, dtype=np.float32):
        check_heads(d_model, num_heads)
        super().__init__(num_heads, dropout_rate, None, scale)
        self.q = Linear(d_model, d_model, bias=bias, rng=rng, dtype=dtype)
        self.kv = Linear(d_model, d_model, blocks=2, bias=bias, rng=rng, dtype=dtype)
        self.output = Linear(d_model, d_model, bias=bias, rng=rng, dtype=dtype)

    def forward(self, x, memory, allowed=None, rng=None):
        """x (B, T, C), memory (B, S, C), allowed broadcastable to (B, H, T, S), True = may attend -> y (B, T, C)."""
        q, cache_q = self.q.forward(x)
        kv, cache_kv = self.kv.forward(memory)  # (B, S, 2C)
        k, v = parts(kv, 2)
        merged, cache_attention = self._attend(q, k, v, allowed, rng)
        y, cache_output = self.output.forward(merged)
        return y, CrossAttentionCache(cache_q, cache_kv, cache_attention, cache_output)

    def backward(self, dy, cache):
        """dy (B, T, C) -> dx (B, T, C) and dmemory (B, S, C)."""
        dmerged = self.output.backward(dy, cache.output)
        dq, dk, dv = self._attend_backward(dmerged, cache.attention)
        dx = self.q.backward(merge_heads(dq), cache.q)
        dmemory = self.kv.backward(merge_heads(dk, dv), cache.kv)
        return dx, dmemory

    def read(self, memory):
        """The keys and values of the memory (B, S, C) -> KVCache, computed once for all tokens that will be decoded."""
        B, S, C = memory.shape
        k, v = (split_heads(part, self.num_heads) for part in parts(self.kv(memory), 2))
        kv_cache = KVCache((B, self.num_heads, S, C // self.num_heads), memory.dtype)
        kv_cache.append(k, v)
        return kv_cache

    def extend(self, x, kv_cache, allowed=None):
        """The outputs y (B, n, C) of n new tokens x (B, n, C) that look at what `read` has given."""
        q = split_heads(self.q(x), self.num_heads)
        y, _ = scaled_dot_product_attention(q, kv_cache.k, kv_cache.v, allowed, scale=self.scale)
        return self.output(merge_heads(y))

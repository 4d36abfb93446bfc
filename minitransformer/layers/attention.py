"""Multi-head attention (paper section 3.2.2): within one sequence, and from one sequence to another.

    MultiHead(Q, K, V) = Concat(head_1, ..., head_h) W^O        head_i = Attention(Q W_i^Q, K W_i^K, V W_i^V)

The per-head matrices W_i^Q (C, D) of the paper stand side by side in one W^Q (C, C): the columns of head i are its
i-th run of D. So the number of parameters does not depend on the number of heads.
"""

from typing import NamedTuple

import numpy as np

from minitransformer.backend import xp
from minitransformer.checks import check_heads, check_rate
from minitransformer.core import Layer
from minitransformer.functional import (
    merge_heads,
    scaled_dot_product_attention,
    scaled_dot_product_attention_backward,
    split_heads,
)
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


class MultiHeadAttention(Layer):
    """What self- and cross-attention share: from projected q, k, v to the heads' merged output, and back."""

    def __init__(self, num_heads, dropout_rate):
        self.num_heads = num_heads
        self.dropout_rate = check_rate("attention dropout rate", dropout_rate)

    def _attend(self, q, k, v, allowed, rng):
        """q (B, T, C), k and v (B, S, C) -> y (B, T, C)."""
        heads = (split_heads(x, self.num_heads) for x in (q, k, v))
        y, cache = scaled_dot_product_attention(*heads, allowed, self.dropout_rate, rng)  # (B, H, T, D)
        return merge_heads(y), cache

    def _attend_backward(self, dy, cache):
        """dy (B, T, C) -> dq (B, H, T, D), dk and dv (B, H, S, D)."""
        return scaled_dot_product_attention_backward(split_heads(dy, self.num_heads), cache)


class SelfAttention(MultiHeadAttention):
    """Queries, keys and values all from the same sequence, projected by one matrix W^Q | W^K | W^V (C, 3C).

    The key's third of the bias has gradient exactly 0: adding one vector to all keys adds the same number to all
    scores of a query, which the softmax does not see. It is kept because PyTorch has it.
    """

    def __init__(self, d_model, num_heads, *, dropout_rate=0.0, rng=None, dtype=np.float32):
        check_heads(d_model, num_heads)
        super().__init__(num_heads, dropout_rate)
        self.qkv = Linear(d_model, d_model, blocks=3, rng=rng, dtype=dtype)
        self.output = Linear(d_model, d_model, rng=rng, dtype=dtype)

    def forward(self, x, allowed=None, rng=None):
        """x (B, T, C), allowed broadcastable to (B, H, T, T), True = may attend -> y (B, T, C)."""
        qkv, cache_qkv = self.qkv.forward(x)  # (B, T, 3C)
        q, k, v = xp.split(qkv, 3, axis=-1)
        merged, cache_attention = self._attend(q, k, v, allowed, rng)
        y, cache_output = self.output.forward(merged)
        return y, SelfAttentionCache(cache_qkv, cache_attention, cache_output)

    def backward(self, dy, cache):
        """dy (B, T, C) -> dx (B, T, C)."""
        dmerged = self.output.backward(dy, cache.output)
        dq, dk, dv = self._attend_backward(dmerged, cache.attention)
        return self.qkv.backward(merge_heads(dq, dk, dv), cache.qkv)


class CrossAttention(MultiHeadAttention):
    """Queries from the decoder, keys and values from the encoder's output, the memory (paper section 3.2.3).

    The two projections have W^Q (C, C) and W^K | W^V (C, 2C).
    """

    def __init__(self, d_model, num_heads, *, dropout_rate=0.0, rng=None, dtype=np.float32):
        check_heads(d_model, num_heads)
        super().__init__(num_heads, dropout_rate)
        self.q = Linear(d_model, d_model, rng=rng, dtype=dtype)
        self.kv = Linear(d_model, d_model, blocks=2, rng=rng, dtype=dtype)
        self.output = Linear(d_model, d_model, rng=rng, dtype=dtype)

    def forward(self, x, memory, allowed=None, rng=None):
        """x (B, T, C), memory (B, S, C), allowed broadcastable to (B, H, T, S), True = may attend -> y (B, T, C)."""
        q, cache_q = self.q.forward(x)
        kv, cache_kv = self.kv.forward(memory)  # (B, S, 2C)
        k, v = xp.split(kv, 2, axis=-1)
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

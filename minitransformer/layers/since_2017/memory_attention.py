"""The attention of a recurrent decoder to the memory: additive (Bahdanau et al. 2015), dot and general (Luong 2015)."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from minitransformer.backend import xp
from minitransformer.checks import check_choice, check_width
from minitransformer.core import Layer, Parameter
from minitransformer.functional import (
    scaled_dot_product_attention,
    scaled_dot_product_attention_backward,
    tanh,
    tanh_backward,
)
from minitransformer.functional.before_2017.additive import additive_attention, additive_attention_backward
from minitransformer.functional.linear import LinearCache
from minitransformer.layers.initializers import normal
from minitransformer.layers.linear import Linear

MEMORY_ATTENTION = ("additive", "dot", "general")


class MemoryAttentionCache(NamedTuple):
    """What `MemoryAttention` remembers."""

    query: Any  # a LinearCache, or None where there is no such matrix
    key: Any
    attention: Any  # an AdditiveAttentionCache, or an AttentionCache
    combine: LinearCache
    tanh: xp.ndarray  # (B, T, R), the output


class MemoryAttention(Layer):
    """y = tanh([context, h] W_c + b_c), where the context is a mean of the memory, weighted by scores of the queries h.

    The score of query h and memory vector m is, by `kind`:

        "additive"   w . tanh(h W_q + m W_k + b)     Bahdanau et al. 2015; Luong et al. call a similar one "concat"
        "dot"        h . m                           Luong et al. 2015
        "general"    h W_q . m                       Luong et al. 2015

    Nothing is divided by a root, and there is one head. The queries are the decoder's states after it has read the
    token (Luong's order), so they are all known before the attention, and one call serves all steps. Bahdanau et al.
    attend with the state before it and feed the context into the recurrence, which takes one call per step. Luong et
    al. also have a variant that feeds y into the next step ("input feeding"), which is left out for the same reason.
    Raises ValueError for another kind.
    """

    def __init__(
        self, kind: str, width: int, *, rng: np.random.Generator | None = None, dtype: DTypeLike = np.float32
    ) -> None:
        self.kind = check_choice("kind", kind, MEMORY_ATTENTION)
        self.query = self.key = self.w = None
        if kind != "dot":
            self.query = Linear(width, width, bias=False, rng=rng, dtype=dtype)
        if kind == "additive":
            self.key = Linear(width, width, rng=rng, dtype=dtype)
            self.w = Parameter(normal(rng, (width,), width**-0.5, dtype))
        self.combine = Linear(2 * width, width, rng=rng, dtype=dtype)

    def forward(
        self,
        h: xp.ndarray,
        memory: xp.ndarray,
        allowed: xp.ndarray | None = None,
        rng: np.random.Generator | None = None,
    ) -> tuple[xp.ndarray, MemoryAttentionCache]:
        """h (B, T, R), memory (B, S, R), allowed broadcastable to (B, T, S) -> y (B, T, R)."""
        keys, cache_key = self.keys(memory)
        y, cache = self.attend(h, memory, keys, allowed)
        return y, cache._replace(key=cache_key)

    def keys(self, memory: xp.ndarray) -> tuple[xp.ndarray, LinearCache | None]:
        """What the queries are compared with: memory (B, S, R) -> (keys (B, S, R), cache). All steps share them."""
        check_width("MemoryAttention", memory, len(self.combine.W.data) // 2, self.combine.W.data.dtype)
        return (memory, None) if self.key is None else self.key.forward(memory)

    def attend(
        self, h: xp.ndarray, memory: xp.ndarray, keys: xp.ndarray, allowed: xp.ndarray | None = None
    ) -> tuple[xp.ndarray, MemoryAttentionCache]:
        """As `forward`, with keys that `keys` has returned; the cache is without theirs."""
        check_width("MemoryAttention", h, len(self.combine.W.data) // 2, self.combine.W.data.dtype)
        q, cache_query = (h, None) if self.query is None else self.query.forward(h)
        cache: Any
        if self.w is not None:
            context, cache = additive_attention(q, keys, memory, self.w.data, allowed)
        else:
            context, cache = scaled_dot_product_attention(q, keys, memory, allowed, scale=1.0)
        y, cache_combine = self.combine.forward(xp.concatenate([context, h], axis=-1))
        y, _ = tanh(y)
        return y, MemoryAttentionCache(cache_query, None, cache, cache_combine, y)

    def backward(self, dy: xp.ndarray, cache: MemoryAttentionCache) -> tuple[xp.ndarray, xp.ndarray]:
        """dy (B, T, R) -> dh (B, T, R) and dmemory (B, S, R), the sum over all steps."""
        dboth = self.combine.backward(tanh_backward(dy, cache.tanh), cache.combine)
        dcontext, dh = xp.split(dboth, 2, axis=-1)
        if self.w is not None:
            dq, dk, dmemory, dw = additive_attention_backward(dcontext, cache.attention)
            self.w.add_grad(dw)
        else:
            dq, dk, dmemory, _ = scaled_dot_product_attention_backward(dcontext, cache.attention)
        dmemory += dk if self.key is None else self.key.backward(dk, cache.key)
        dh = dh + (dq if self.query is None else self.query.backward(dq, cache.query))
        return dh, dmemory

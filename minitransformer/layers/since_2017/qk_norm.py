"""QK-norm: each head's query and key get mean square 1 before they meet (Henry et al. 2020; Qwen3, Gemma 3)."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from minitransformer.backend import xp
from minitransformer.core import Layer
from minitransformer.functional.linear import LinearCache
from minitransformer.functional.since_2017.rms_norm import RMSNormCache
from minitransformer.layers.attention import parts
from minitransformer.layers.linear import Linear
from minitransformer.layers.since_2017.rms_norm import RMSNorm


class NormalizedProjectionCache(NamedTuple):
    """The cache of `NormalizedProjection`."""

    projection: LinearCache
    q: RMSNormCache
    k: RMSNormCache


class NormalizedProjection(Layer):
    """The projection of self-attention, whose queries and keys pass an RMSNorm, head by head: x (B, T, C) -> q | k | v.

    All heads of queries share one gain (d_k,), and so do all heads of keys. A score is then at most
    |gain_q| |gain_k| sqrt(d_k), however large x is, so that no softmax saturates because weights have grown. The norms
    come before RoPE: it keeps lengths, but with a gain the order matters. `widths` are those of q, k and v.
    """

    def __init__(
        self, projection: Linear, widths: Sequence[int], d_k: int, *, eps: float, dtype: DTypeLike = np.float32
    ) -> None:
        self.projection, self.widths, self.d_k = projection, tuple(widths), d_k
        self.q_norm, self.k_norm = (RMSNorm(d_k, eps=eps, dtype=dtype) for _ in range(2))

    def forward(
        self, x: xp.ndarray, rng: np.random.Generator | None = None
    ) -> tuple[xp.ndarray, NormalizedProjectionCache]:
        """x (B, T, C) -> q, k and v side by side (B, T, the sum of the widths)."""
        qkv, cache_projection = self.projection.forward(x)
        q, k, v = parts(qkv, self.widths)
        q, cache_q = self.q_norm.forward(self._by_head(q))
        k, cache_k = self.k_norm.forward(self._by_head(k))
        return self._joined(q, k, v), NormalizedProjectionCache(cache_projection, cache_q, cache_k)

    def backward(self, dqkv: xp.ndarray, cache: NormalizedProjectionCache) -> xp.ndarray:
        """dqkv (B, T, the sum of the widths) -> dx (B, T, C)."""
        dq, dk, dv = parts(dqkv, self.widths)
        dq = self.q_norm.backward(self._by_head(dq), cache.q)
        dk = self.k_norm.backward(self._by_head(dk), cache.k)
        return self.projection.backward(self._joined(dq, dk, dv), cache.projection)

    def _by_head(self, x):
        """x (B, T, H d_k) -> (B T H, d_k)."""
        return x.reshape(-1, self.d_k)

    def _joined(self, q, k, v):
        """q (B T H, d_k), k (B T G, d_k), v (B, T, G d_v) -> (B, T, the sum of the widths)."""
        return xp.concatenate([x.reshape(*v.shape[:-1], -1) for x in (q, k, v)], axis=-1)

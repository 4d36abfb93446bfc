"""The decoder (paper section 3.1, the right half of figure 1)."""

from typing import Any, NamedTuple

import numpy as np

from minitransformer.backend import xp
from minitransformer.core import Layer
from minitransformer.layers.residual import Residual, ResidualCache
from minitransformer.layers.stack import LayerStack, StackCache


class DecoderLayerCache(NamedTuple):
    """The cache of `DecoderLayer`."""

    self_attention: ResidualCache
    cross_attention: ResidualCache
    feed_forward: ResidualCache


class DecoderLayer(Layer):
    """Masked self-attention, cross-attention to the memory, feed-forward network; each in a residual connection."""

    def __init__(self, self_attention: Residual, cross_attention: Residual, feed_forward: Residual) -> None:
        self.self_attention = self_attention
        self.cross_attention = cross_attention
        self.feed_forward = feed_forward

    def forward(
        self,
        x: xp.ndarray,
        memory: xp.ndarray,
        allowed: xp.ndarray | None = None,
        memory_allowed: xp.ndarray | None = None,
        rng: np.random.Generator | None = None,
    ) -> tuple[xp.ndarray, DecoderLayerCache]:
        """x (B, T, C), memory (B, S, C), allowed for (B, H, T, T), memory_allowed for (B, H, T, S) -> y (B, T, C)."""
        a, cache_self = self.self_attention.forward(x, allowed, rng=rng)
        c, cache_cross = self.cross_attention.forward(a, memory, memory_allowed, rng=rng)
        y, cache_network = self.feed_forward.forward(c, rng=rng)
        return y, DecoderLayerCache(cache_self, cache_cross, cache_network)

    def backward(self, dy: xp.ndarray, cache: DecoderLayerCache) -> tuple[xp.ndarray, xp.ndarray]:
        """dy (B, T, C) -> dx (B, T, C) and dmemory (B, S, C)."""
        dc = self.feed_forward.backward(dy, cache.feed_forward)
        da, dmemory = self.cross_attention.backward(dc, cache.cross_attention)
        return self.self_attention.backward(da, cache.self_attention), dmemory


class Decoder(LayerStack):
    """N decoder layers, each of which reads the same memory."""

    layers: list[DecoderLayer]

    def forward(  # type: ignore[override]  # a stack takes any context, a decoder the memory and two masks
        self,
        x: xp.ndarray,
        memory: xp.ndarray,
        allowed: xp.ndarray | None = None,
        memory_allowed: xp.ndarray | None = None,
        rng: np.random.Generator | None = None,
    ) -> tuple[xp.ndarray, StackCache]:
        """As `DecoderLayer.forward`, through all layers."""
        return super().forward(x, memory, allowed, memory_allowed, rng=rng)

    def backward(self, dy: xp.ndarray, cache: StackCache, needs_dx: bool = True) -> tuple[xp.ndarray, xp.ndarray]:
        """dy (B, T, C) -> dx (B, T, C) and dmemory (B, S, C), the sum over all layers: each reads the memory.

        If nobody `needs_dx`, nor dmemory, the pass ends as that of `LayerStack` does.
        """
        if self.norm is not None:
            dy = self.norm.backward(dy, cache.norm)
        dmemory: Any = 0.0
        for layer, cache_layer in self._last_layer_first(cache, needs_dx):
            dy, dmemory_layer = layer.backward(dy, cache_layer)
            dmemory = dmemory + dmemory_layer
        return dy, dmemory

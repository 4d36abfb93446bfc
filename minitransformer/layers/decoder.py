"""The decoder (paper section 3.1, the right half of figure 1)."""

from typing import NamedTuple

import numpy as np

from minitransformer.core import Layer
from minitransformer.layers.stack import (
    LayerStack,
    add_and_norm,
    make_cross_attention,
    make_feed_forward,
    make_self_attention,
)


class DecoderLayerCache(NamedTuple):
    """What `DecoderLayer` remembers."""

    self_attention: object
    cross_attention: object
    feed_forward: object


class DecoderLayer(Layer):
    """Masked self-attention, cross-attention to the memory, the feed-forward network; each in its residual."""

    def __init__(self, config, *, positions=None, rng=None, dtype=np.float32):
        self.self_attention = add_and_norm(make_self_attention(config, positions, rng, dtype), config, dtype)
        self.cross_attention = add_and_norm(make_cross_attention(config, rng, dtype), config, dtype)
        self.feed_forward = add_and_norm(make_feed_forward(config, rng, dtype), config, dtype)

    def forward(self, x, memory, allowed=None, memory_allowed=None, rng=None):
        """x (B, T, C), memory (B, S, C), allowed for (B, H, T, T), memory_allowed for (B, H, T, S) -> y (B, T, C)."""
        a, cache_self = self.self_attention.forward(x, allowed, rng=rng)
        c, cache_cross = self.cross_attention.forward(a, memory, memory_allowed, rng=rng)
        y, cache_network = self.feed_forward.forward(c, rng=rng)
        return y, DecoderLayerCache(cache_self, cache_cross, cache_network)

    def backward(self, dy, cache):
        """dy (B, T, C) -> dx (B, T, C) and dmemory (B, S, C)."""
        dc = self.feed_forward.backward(dy, cache.feed_forward)
        da, dmemory = self.cross_attention.backward(dc, cache.cross_attention)
        return self.self_attention.backward(da, cache.self_attention), dmemory

    def extend(self, x, kv_cache, memory_kv_cache, allowed=None, memory_allowed=None):
        """Outputs y (B, n, C) for n new tokens x (B, n, C); `memory_kv_cache` is from `CrossAttention.read`."""
        a = self.self_attention.extend(x, kv_cache, allowed)
        return self.feed_forward(self.cross_attention.extend(a, memory_kv_cache, memory_allowed))


class Decoder(LayerStack):
    """N decoder layers, each of which reads the same memory."""

    def __init__(self, config, *, rng=None, dtype=np.float32):
        super().__init__(config, DecoderLayer, bidirectional=False, rng=rng, dtype=dtype)

    def forward(self, x, memory, allowed=None, memory_allowed=None, rng=None):
        """As `DecoderLayer.forward`, through all layers."""
        return super().forward(x, memory, allowed, memory_allowed, rng=rng)

    def backward(self, dy, cache):
        """dy (B, T, C) -> dx (B, T, C) and dmemory (B, S, C), the sum over all layers, as each one read the memory.

        Empties `cache.layers`, so that memory is freed on the way.
        """
        if self.norm is not None:
            dy = self.norm.backward(dy, cache.norm)
        dmemory = 0.0
        for layer in reversed(self.layers):
            dy, dmemory_layer = layer.backward(dy, cache.layers.pop())
            dmemory = dmemory + dmemory_layer
        return dy, dmemory

    def read(self, memory):
        """The keys and values that each layer's cross-attention makes of memory (B, S, C) -> a KV cache a layer."""
        return [layer.cross_attention.sublayer.read(memory) for layer in self.layers]

    def extend(self, x, kv_caches, memory_kv_caches, allowed=None, memory_allowed=None):
        """Outputs y (B, n, C) for n new tokens x (B, n, C), in decoding: two KV caches for each layer."""
        for layer, kv_cache, memory_kv_cache in zip(self.layers, kv_caches, memory_kv_caches, strict=True):
            x = layer.extend(x, kv_cache, memory_kv_cache, allowed, memory_allowed)
        return x if self.norm is None else self.norm(x)

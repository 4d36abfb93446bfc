"""The decoder (paper section 3.1, the right half of figure 1)."""

from typing import NamedTuple

import numpy as np

from minitransformer.core import Layer
from minitransformer.layers.attention import CrossAttention, SelfAttention
from minitransformer.layers.encoder import StackCache
from minitransformer.layers.feed_forward import FeedForward
from minitransformer.layers.layer_norm import LayerNorm
from minitransformer.layers.residual import Residual


class DecoderLayerCache(NamedTuple):
    """What `DecoderLayer` remembers."""

    self_attention: object
    cross_attention: object
    feed_forward: object


class DecoderLayer(Layer):
    """Masked self-attention, cross-attention to the memory, the feed-forward network; each in its residual."""

    def __init__(self, config, *, rng=None, dtype=np.float32):
        C, H = config.d_model, config.num_heads
        drawn = {"rng": rng, "dtype": dtype}
        itself = SelfAttention(C, H, dropout_rate=config.attention_dropout, **drawn)
        across = CrossAttention(C, H, dropout_rate=config.attention_dropout, **drawn)
        network = FeedForward(C, config.d_ff, dropout_rate=config.ffn_dropout, **drawn)
        around = {"dropout_rate": config.dropout, "norm": config.norm, "dtype": dtype}
        self.self_attention = Residual(itself, C, **around)
        self.cross_attention = Residual(across, C, **around)
        self.feed_forward = Residual(network, C, **around)

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


class Decoder(Layer):
    """N decoder layers, and a LayerNorm after the last if `config.has_final_norm` (needed with pre-norm)."""

    def __init__(self, config, *, rng=None, dtype=np.float32):
        self.layers = [DecoderLayer(config, rng=rng, dtype=dtype) for _ in range(config.num_layers)]
        self.norm = LayerNorm(config.d_model, dtype=dtype) if config.has_final_norm else None

    def forward(self, x, memory, allowed=None, memory_allowed=None, rng=None):
        """As `DecoderLayer.forward`, through all layers; each reads the same memory."""
        caches = []
        for layer in self.layers:
            x, cache = layer.forward(x, memory, allowed, memory_allowed, rng=rng)
            caches.append(cache)
        cache_norm = None
        if self.norm is not None:
            x, cache_norm = self.norm.forward(x)
        return x, StackCache(caches, cache_norm)

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

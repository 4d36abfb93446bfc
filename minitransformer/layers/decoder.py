"""The decoder (paper section 3.1, the right half of figure 1)."""

from typing import NamedTuple

import numpy as np

from minitransformer.core import Layer
from minitransformer.layers.attention import CrossAttention, SelfAttention
from minitransformer.layers.encoder import (
    StackCache,
    attention_choices,
    feed_forward_choices,
    make_final_norm,
    residual_choices,
    stack_positions,
)
from minitransformer.layers.feed_forward import FeedForward
from minitransformer.layers.residual import Residual


class DecoderLayerCache(NamedTuple):
    """What `DecoderLayer` remembers."""

    self_attention: object
    cross_attention: object
    feed_forward: object


class DecoderLayer(Layer):
    """Masked self-attention, cross-attention to the memory, the feed-forward network; each in its residual."""

    def __init__(self, config, *, positions=None, rng=None, dtype=np.float32):
        C, H = config.d_model, config.num_heads
        drawn = {"rng": rng, "dtype": dtype}
        choices = attention_choices(config)
        itself = SelfAttention(C, H, positions=positions, **choices, **drawn)
        across = CrossAttention(C, H, **choices, **drawn)
        network = FeedForward(C, config.d_ff, **feed_forward_choices(config), **drawn)
        around = {**residual_choices(config), "dtype": dtype}
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

    def extend(self, x, kv, memory_kv, allowed=None, memory_allowed=None):
        """The outputs y (B, n, C) of n new tokens x (B, n, C), which look at `memory_kv` of `CrossAttention.read`."""
        a = self.self_attention.extend(x, kv, allowed)
        return self.feed_forward(self.cross_attention.extend(a, memory_kv, memory_allowed))


class Decoder(Layer):
    """N decoder layers, and a normalisation after the last if `config.has_final_norm` (needed with pre-norm)."""

    def __init__(self, config, *, rng=None, dtype=np.float32):
        self.positions = stack_positions(config, False, rng, dtype)
        more = {"positions": self.positions, "rng": rng, "dtype": dtype}
        self.layers = [DecoderLayer(config, **more) for _ in range(config.num_layers)]
        self.norm = make_final_norm(config, dtype)

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

    def read(self, memory):
        """The keys and values that each layer's cross-attention makes of memory (B, S, C) -> one kv a layer."""
        return [layer.cross_attention.sublayer.read(memory) for layer in self.layers]

    def extend(self, x, kvs, memory_kvs, allowed=None, memory_allowed=None):
        """The outputs y (B, n, C) of n new tokens x (B, n, C), with two kv for each layer."""
        for layer, kv, memory_kv in zip(self.layers, kvs, memory_kvs, strict=True):
            x = layer.extend(x, kv, memory_kv, allowed, memory_allowed)
        return x if self.norm is None else self.norm(x)

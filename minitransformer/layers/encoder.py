"""The encoder (paper section 3.1, the left half of figure 1)."""

from typing import NamedTuple

import numpy as np

from minitransformer.core import Layer
from minitransformer.layers.attention import SelfAttention
from minitransformer.layers.feed_forward import FeedForward
from minitransformer.layers.layer_norm import LayerNorm
from minitransformer.layers.residual import Residual


class EncoderLayerCache(NamedTuple):
    """What `EncoderLayer` remembers."""

    self_attention: object
    feed_forward: object


class StackCache(NamedTuple):
    """What a stack remembers: a list that backward empties, layer by layer, and the final norm's cache or None."""

    layers: list
    norm: object


class EncoderLayer(Layer):
    """Self-attention, then the feed-forward network, each inside its residual connection."""

    def __init__(self, config, *, rng=None, dtype=np.float32):
        C = config.d_model
        attention = SelfAttention(C, config.num_heads, dropout_rate=config.attention_dropout, rng=rng, dtype=dtype)
        network = FeedForward(C, config.d_ff, dropout_rate=config.ffn_dropout, rng=rng, dtype=dtype)
        around = {"dropout_rate": config.dropout, "norm": config.norm, "dtype": dtype}
        self.self_attention = Residual(attention, C, **around)
        self.feed_forward = Residual(network, C, **around)

    def forward(self, x, allowed=None, rng=None):
        """x (B, S, C), allowed broadcastable to (B, H, S, S) -> y (B, S, C)."""
        a, cache_attention = self.self_attention.forward(x, allowed, rng=rng)
        y, cache_network = self.feed_forward.forward(a, rng=rng)
        return y, EncoderLayerCache(cache_attention, cache_network)

    def backward(self, dy, cache):
        """dy (B, S, C) -> dx (B, S, C)."""
        da = self.feed_forward.backward(dy, cache.feed_forward)
        return self.self_attention.backward(da, cache.self_attention)


class Encoder(Layer):
    """N encoder layers, and a LayerNorm after the last if `config.has_final_norm` (needed with pre-norm)."""

    def __init__(self, config, *, rng=None, dtype=np.float32):
        self.layers = [EncoderLayer(config, rng=rng, dtype=dtype) for _ in range(config.num_layers)]
        self.norm = LayerNorm(config.d_model, dtype=dtype) if config.has_final_norm else None

    def forward(self, x, allowed=None, rng=None):
        """x (B, S, C), allowed broadcastable to (B, H, S, S) -> memory (B, S, C)."""
        caches = []
        for layer in self.layers:
            x, cache = layer.forward(x, allowed, rng=rng)
            caches.append(cache)
        cache_norm = None
        if self.norm is not None:
            x, cache_norm = self.norm.forward(x)
        return x, StackCache(caches, cache_norm)

    def backward(self, dy, cache):
        """dmemory (B, S, C) -> dx (B, S, C). Empties `cache.layers`, so that memory is freed on the way."""
        if self.norm is not None:
            dy = self.norm.backward(dy, cache.norm)
        for layer in reversed(self.layers):
            dy = layer.backward(dy, cache.layers.pop())
        return dy

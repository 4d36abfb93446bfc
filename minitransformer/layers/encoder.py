"""The encoder (paper section 3.1, the left half of figure 1)."""

from typing import NamedTuple

import numpy as np

from minitransformer.core import Layer
from minitransformer.layers.stack import LayerStack, add_and_norm, make_feed_forward, make_self_attention


class EncoderLayerCache(NamedTuple):
    """What `EncoderLayer` remembers."""

    self_attention: object
    feed_forward: object


class EncoderLayer(Layer):
    """Self-attention, then the feed-forward network, each inside its residual connection."""

    def __init__(self, config, *, positions=None, rng=None, dtype=np.float32):
        self.self_attention = add_and_norm(make_self_attention(config, positions, rng, dtype), config, dtype)
        self.feed_forward = add_and_norm(make_feed_forward(config, rng, dtype), config, dtype)

    def forward(self, x, allowed=None, rng=None):
        """x (B, S, C), allowed broadcastable to (B, H, S, S) -> y (B, S, C)."""
        a, cache_attention = self.self_attention.forward(x, allowed, rng=rng)
        y, cache_network = self.feed_forward.forward(a, rng=rng)
        return y, EncoderLayerCache(cache_attention, cache_network)

    def backward(self, dy, cache):
        """dy (B, S, C) -> dx (B, S, C)."""
        da = self.feed_forward.backward(dy, cache.feed_forward)
        return self.self_attention.backward(da, cache.self_attention)

    def extend(self, x, kv_cache, allowed=None):
        """Outputs y (B, n, C) for n new tokens x (B, n, C), as `SelfAttention.extend`."""
        return self.feed_forward(self.self_attention.extend(x, kv_cache, allowed))


class Encoder(LayerStack):
    """N encoder layers: every token of the source may see every other. Its output is the memory."""

    def __init__(self, config, *, rng=None, dtype=np.float32):
        super().__init__(config, EncoderLayer, bidirectional=True, rng=rng, dtype=dtype)

    def forward(self, x, allowed=None, rng=None):
        """x (B, S, C), allowed broadcastable to (B, H, S, S) -> memory (B, S, C)."""
        return super().forward(x, allowed, rng=rng)

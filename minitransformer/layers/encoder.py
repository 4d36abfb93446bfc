"""The encoder (paper section 3.1, the left half of figure 1)."""

from typing import NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from minitransformer.backend import xp
from minitransformer.config import TransformerConfig
from minitransformer.core import Layer
from minitransformer.layers.residual import ResidualCache
from minitransformer.layers.since_2017.attention_positions import AttentionPositions
from minitransformer.layers.since_2017.kv_cache import KVCache
from minitransformer.layers.stack import (
    LayerStack,
    StackCache,
    add_and_norm,
    make_feed_forward,
    make_self_attention,
)


class EncoderLayerCache(NamedTuple):
    """The cache of `EncoderLayer`."""

    self_attention: ResidualCache
    feed_forward: ResidualCache


class EncoderLayer(Layer):
    """Self-attention, then the feed-forward network, each inside its residual connection."""

    def __init__(
        self,
        config: TransformerConfig,
        *,
        positions: AttentionPositions | None = None,
        bidirectional: bool = True,
        rng: np.random.Generator | None = None,
        dtype: DTypeLike = np.float32,
    ) -> None:
        self_attention = make_self_attention(config, positions, bidirectional, rng, dtype)
        self.self_attention = add_and_norm(self_attention, config, dtype)
        self.feed_forward = add_and_norm(make_feed_forward(config, rng, dtype), config, dtype)

    def forward(
        self, x: xp.ndarray, allowed: xp.ndarray | None = None, rng: np.random.Generator | None = None
    ) -> tuple[xp.ndarray, EncoderLayerCache]:
        """x (B, S, C), allowed broadcastable to (B, H, S, S) -> y (B, S, C)."""
        a, cache_attention = self.self_attention.forward(x, allowed, rng=rng)
        y, cache_network = self.feed_forward.forward(a, rng=rng)
        return y, EncoderLayerCache(cache_attention, cache_network)

    def backward(self, dy: xp.ndarray, cache: EncoderLayerCache) -> xp.ndarray:
        """dy (B, S, C) -> dx (B, S, C)."""
        da = self.feed_forward.backward(dy, cache.feed_forward)
        return self.self_attention.backward(da, cache.self_attention)

    def extend(self, x: xp.ndarray, kv_cache: KVCache, allowed: xp.ndarray | None = None) -> xp.ndarray:
        """n new tokens x (B, n, C), in decoding -> y (B, n, C); see `SelfAttention.extend`."""
        return self.feed_forward(self.self_attention.extend(x, kv_cache, allowed))


class Encoder(LayerStack):
    """N encoder layers: every token of the source may attend to every other. The output is called the memory."""

    layers: list[EncoderLayer]

    def __init__(
        self, config: TransformerConfig, *, rng: np.random.Generator | None = None, dtype: DTypeLike = np.float32
    ) -> None:
        super().__init__(config, EncoderLayer, bidirectional=True, rng=rng, dtype=dtype)

    def forward(  # type: ignore[override]  # a stack takes any context, an encoder only a mask
        self, x: xp.ndarray, allowed: xp.ndarray | None = None, rng: np.random.Generator | None = None
    ) -> tuple[xp.ndarray, StackCache]:
        """x (B, S, C), allowed broadcastable to (B, H, S, S) -> memory (B, S, C)."""
        return super().forward(x, allowed, rng=rng)

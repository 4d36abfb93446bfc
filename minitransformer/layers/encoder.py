"""The encoder (paper section 3.1, the left half of figure 1)."""

from typing import NamedTuple

import numpy as np

from minitransformer.backend import xp
from minitransformer.core import Layer
from minitransformer.layers.residual import Residual, ResidualCache
from minitransformer.layers.stack import LayerStack, StackCache


class EncoderLayerCache(NamedTuple):
    """The cache of `EncoderLayer`."""

    self_attention: ResidualCache
    feed_forward: ResidualCache


class EncoderLayer(Layer):
    """Self-attention, then the feed-forward network, each inside its residual connection:

    EncoderLayer(Residual(SelfAttention(C, H), LayerNorm(C)), Residual(FeedForward(C, F), LayerNorm(C)))
    """

    def __init__(self, self_attention: Residual, feed_forward: Residual) -> None:
        self.self_attention = self_attention
        self.feed_forward = feed_forward

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


class Encoder(LayerStack):
    """N encoder layers: every token of the source may attend to every other. The output is called the memory."""

    layers: list[EncoderLayer]

    def forward(  # type: ignore[override]  # a stack takes any context, an encoder only a mask
        self, x: xp.ndarray, allowed: xp.ndarray | None = None, rng: np.random.Generator | None = None
    ) -> tuple[xp.ndarray, StackCache]:
        """x (B, S, C), allowed broadcastable to (B, H, S, S) -> memory (B, S, C)."""
        return super().forward(x, allowed, rng=rng)

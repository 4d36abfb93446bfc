"""The encoder (paper section 3.1, the left half of figure 1)."""

from typing import NamedTuple

import numpy as np

from minitransformer.core import Layer
from minitransformer.layers.attention import SelfAttention
from minitransformer.layers.feed_forward import FeedForward
from minitransformer.layers.normalization import make_norm
from minitransformer.layers.positions import make_attention_positions
from minitransformer.layers.residual import Residual


class EncoderLayerCache(NamedTuple):
    """What `EncoderLayer` remembers."""

    self_attention: object
    feed_forward: object


class StackCache(NamedTuple):
    """What a stack remembers: a list that backward empties, layer by layer, and the final norm's cache or None."""

    layers: list
    norm: object


def attention_choices(config):
    """What `config` says of every attention, as keyword arguments."""
    scale = None if config.scale_scores else 1.0
    return {"dropout_rate": config.attention_dropout, "scale": scale, "bias": config.bias}


def feed_forward_choices(config):
    """What `config` says of every feed-forward network, as keyword arguments."""
    return {"activation": config.activation, "bias": config.bias, "dropout_rate": config.ffn_dropout}


def residual_choices(config):
    """What `config` says of every residual connection, as keyword arguments."""
    around = {"dropout_rate": config.dropout, "norm": config.norm}
    return {**around, "normalization": config.normalization, "norm_eps": config.norm_eps}


def make_final_norm(config, dtype):
    """What follows the last layer of a stack: a normalisation, or None."""
    if not config.has_final_norm:
        return None
    return make_norm(config.normalization, config.d_model, config.norm_eps, dtype)


def stack_positions(config, bidirectional, rng, dtype):
    """The positions inside the self-attentions of a stack, the same for all layers, or None."""
    H = config.num_heads
    sizes = (config.positions, H, config.d_model // H, config.max_len)
    return make_attention_positions(*sizes, bidirectional=bidirectional, rng=rng, dtype=dtype)


class EncoderLayer(Layer):
    """Self-attention, then the feed-forward network, each inside its residual connection."""

    def __init__(self, config, *, positions=None, rng=None, dtype=np.float32):
        C = config.d_model
        choices = attention_choices(config)
        attention = SelfAttention(C, config.num_heads, positions=positions, **choices, rng=rng, dtype=dtype)
        network = FeedForward(C, config.d_ff, **feed_forward_choices(config), rng=rng, dtype=dtype)
        around = {**residual_choices(config), "dtype": dtype}
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

    def extend(self, x, kv, allowed=None):
        """The outputs y (B, n, C) of n new tokens x (B, n, C), as `SelfAttention.extend`."""
        return self.feed_forward(self.self_attention.extend(x, kv, allowed))


class Encoder(Layer):
    """N encoder layers, and a normalisation after the last if `config.has_final_norm` (needed with pre-norm).

    Positions that act inside attention are shared by all layers. `bidirectional` says whether tokens see those behind
    them, as the mask given to forward lets them.
    """

    def __init__(self, config, *, bidirectional=True, rng=None, dtype=np.float32):
        self.positions = stack_positions(config, bidirectional, rng, dtype)
        more = {"positions": self.positions, "rng": rng, "dtype": dtype}
        self.layers = [EncoderLayer(config, **more) for _ in range(config.num_layers)]
        self.norm = make_final_norm(config, dtype)

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

    def extend(self, x, kvs, allowed=None):
        """The outputs y (B, n, C) of n new tokens x (B, n, C), with one kv for each layer."""
        for layer, kv in zip(self.layers, kvs, strict=True):
            x = layer.extend(x, kv, allowed)
        return x if self.norm is None else self.norm(x)

"""The stack of layers that encoder, decoder and GPT share, and the sub-layers that a configuration asks for."""

from typing import NamedTuple

import numpy as np

from minitransformer.core import Layer
from minitransformer.layers.attention import CrossAttention, SelfAttention
from minitransformer.layers.feed_forward import FeedForward
from minitransformer.layers.normalization import make_norm
from minitransformer.layers.positions import make_attention_positions
from minitransformer.layers.residual import Residual


class StackCache(NamedTuple):
    """What a stack remembers: a list that backward empties, layer by layer, and the final norm's cache or None."""

    layers: list
    norm: object

    def attention_weights(self, sublayer="self_attention"):
        """The weights (B, H, T, S) of every layer's attention called `sublayer`, first layer first -> list."""
        return [getattr(cache, sublayer).sublayer.attention.weights for cache in self.layers]


class LayerStack(Layer):
    """N layers of one kind, and a normalisation after the last if `config.has_final_norm` (needed with pre-norm).

    `layer_class` is `EncoderLayer` or `DecoderLayer`. Positions that act inside self-attention are shared by all
    layers; `bidirectional` says whether tokens see later ones, as the mask given to forward lets them.
    """

    def __init__(self, config, layer_class, *, bidirectional, rng=None, dtype=np.float32):
        self.positions = make_attention_positions(
            config.positions,
            config.num_heads,
            config.d_model // config.num_heads,
            config.max_len,
            bidirectional=bidirectional,
            rng=rng,
            dtype=dtype,
        )
        self.layers = [
            layer_class(config, positions=self.positions, rng=rng, dtype=dtype) for _ in range(config.num_layers)
        ]
        self.norm = None
        if config.has_final_norm:
            self.norm = make_norm(config.normalization, config.d_model, config.norm_eps, dtype)

    def forward(self, x, *context, rng=None):
        """x (B, T, C) through all layers -> y (B, T, C); each layer is given the same context (memory, masks)."""
        caches = []
        for layer in self.layers:
            x, cache = layer.forward(x, *context, rng=rng)
            caches.append(cache)
        cache_norm = None
        if self.norm is not None:
            x, cache_norm = self.norm.forward(x)
        return x, StackCache(caches, cache_norm)

    def backward(self, dy, cache):
        """dy (B, T, C) -> dx (B, T, C). Empties `cache.layers`, so that memory is freed on the way."""
        if self.norm is not None:
            dy = self.norm.backward(dy, cache.norm)
        for layer in reversed(self.layers):
            dy = layer.backward(dy, cache.layers.pop())
        return dy

    def extend(self, x, kv_caches, *context):
        """Outputs y (B, n, C) for n new tokens x (B, n, C), in decoding: one KV cache for each layer."""
        for layer, kv_cache in zip(self.layers, kv_caches, strict=True):
            x = layer.extend(x, kv_cache, *context)
        return x if self.norm is None else self.norm(x)


def make_self_attention(config, positions, rng, dtype):
    """The self-attention that `config` asks for."""
    return SelfAttention(
        config.d_model,
        config.num_heads,
        dropout_rate=config.attention_dropout,
        positions=positions,
        scale=None if config.scale_scores else 1.0,
        bias=config.bias,
        rng=rng,
        dtype=dtype,
    )


def make_cross_attention(config, rng, dtype):
    """The cross-attention that `config` asks for."""
    return CrossAttention(
        config.d_model,
        config.num_heads,
        dropout_rate=config.attention_dropout,
        scale=None if config.scale_scores else 1.0,
        bias=config.bias,
        rng=rng,
        dtype=dtype,
    )


def make_feed_forward(config, rng, dtype):
    """The feed-forward network that `config` asks for."""
    return FeedForward(
        config.d_model,
        config.d_ff,
        activation=config.activation,
        bias=config.bias,
        dropout_rate=config.ffn_dropout,
        rng=rng,
        dtype=dtype,
    )


def add_and_norm(sublayer, config, dtype):
    """`sublayer` inside the residual connection and the normalisation that `config` asks for."""
    return Residual(
        sublayer,
        config.d_model,
        dropout_rate=config.dropout,
        norm=config.norm,
        normalization=config.normalization,
        norm_eps=config.norm_eps,
        dtype=dtype,
    )

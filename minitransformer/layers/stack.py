"""The stack of layers that encoder, decoder and GPT share, and what makes its sub-layers for a configuration."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from minitransformer.backend import xp
from minitransformer.config import TransformerConfig
from minitransformer.core import Layer
from minitransformer.functional.layer_norm import LayerNormCache
from minitransformer.functional.since_2017.rms_norm import RMSNormCache
from minitransformer.layers.attention import CrossAttention, SelfAttention
from minitransformer.layers.feed_forward import FeedForward
from minitransformer.layers.normalization import make_norm
from minitransformer.layers.positions import make_attention_positions
from minitransformer.layers.residual import Residual
from minitransformer.layers.since_2017.attention_kinds import make_attention, make_cross_attention_kind
from minitransformer.layers.since_2017.attention_positions import AttentionPositions
from minitransformer.layers.since_2017.experts import MixtureOfExperts
from minitransformer.layers.since_2017.kv_cache import KVCache
from minitransformer.layers.since_2017.qk_norm import NormalizedProjection


class StackCache(NamedTuple):
    """The cache of a `LayerStack`."""

    layers: list  # each layer's cache
    norm: LayerNormCache | RMSNormCache | None

    def attention_weights(self, sublayer: str = "self_attention") -> list[xp.ndarray]:
        """The weights (B, H, T, S) of every layer's attention called `sublayer`, first layer first -> list."""
        return [getattr(cache, sublayer).sublayer.attention.weights for cache in self.layers]


class LayerStack(Layer):
    """N layers of one kind, and a normalisation after the last if `config.has_final_norm` (needed with pre-norm).

    With `config.share_layers` it is one layer N times (ALBERT, section 3.1). Each use has its own cache and draws its
    own dropout, and backward adds the gradients of all uses, so nothing else changes. Parameters have their first name.

    `layer_class` is `EncoderLayer` or `DecoderLayer`. Positions that act inside self-attention are shared by all
    layers; `bidirectional` says whether tokens see later ones.
    """

    layers: list[Any]  # of `layer_class`

    def __init__(
        self,
        config: TransformerConfig,
        layer_class: Callable[..., Layer],
        *,
        bidirectional: bool,
        rng: np.random.Generator | None = None,
        dtype: DTypeLike = np.float32,
    ) -> None:
        different = 1 if config.share_layers else config.num_layers
        configs = [config.of_layer(i) for i in range(different)]
        options: dict[str, Any] = {"bidirectional": bidirectional, "rng": rng, "dtype": dtype}
        heads = (config.positions, config.num_heads, config.head_widths[0], config.max_len)
        kinds = dict.fromkeys(each.rotary for each in configs)  # layers turned alike share one table
        positions = {rotary: make_attention_positions(*heads, rotary=rotary, **options) for rotary in kinds}
        self.positions = positions[configs[0].rotary]
        self.layers = [layer_class(each, positions=positions[each.rotary], **options) for each in configs]
        self.layers *= config.num_layers // different
        self.norm: Layer | None = None
        if config.has_final_norm:
            self.norm = make_norm(config.normalization, config.d_model, config.norm_eps, dtype)

    def forward(
        self, x: xp.ndarray, *context: xp.ndarray | None, rng: np.random.Generator | None = None
    ) -> tuple[xp.ndarray, StackCache]:
        """x (B, T, C) through all layers -> y (B, T, C). Every layer gets the same context (memory, masks)."""
        caches = []
        for layer in self.layers:
            x, cache = layer.forward(x, *context, rng=rng)
            caches.append(cache)
        cache_norm = None
        if self.norm is not None:
            x, cache_norm = self.norm.forward(x)
        return x, StackCache(caches, cache_norm)

    def __call__(self, x: xp.ndarray, *context: Any, **options: Any) -> xp.ndarray:
        """As `forward`, without the caches: those of one layer are dropped before the next one makes its own."""
        for layer in self.layers:
            x = layer(x, *context, **options)
        return x if self.norm is None else self.norm(x)

    def backward(self, dy: xp.ndarray, cache: StackCache, needs_dx: bool = True) -> Any:
        """dy (B, T, C) -> dx (B, T, C).

        If nobody `needs_dx`, the pass ends at the lowest layer with a parameter that is not frozen.
        """
        if self.norm is not None:
            dy = self.norm.backward(dy, cache.norm)
        for layer, cache_layer in self._last_layer_first(cache, needs_dx):
            dy = layer.backward(dy, cache_layer)
        return dy

    def _last_layer_first(self, cache, needs_dx):
        """(layer, its cache) of all layers that need a backward pass."""
        trained = (i for i, layer in enumerate(self.layers) if layer.is_trained)
        lowest = 0 if needs_dx else next(trained, len(self.layers))
        return zip(reversed(self.layers[lowest:]), reversed(cache.layers[lowest:]), strict=True)

    def make_kv_caches(self, batch: int, max_len: int) -> list[Any]:
        """Empty KV caches for `batch` sequences of at most `max_len` tokens, one for each layer."""
        return [layer.self_attention.sublayer.make_kv_cache(batch, max_len) for layer in self.layers]

    def extend(self, x: xp.ndarray, kv_caches: Sequence[KVCache], *context: Any) -> xp.ndarray:
        """n new tokens x (B, n, C), in decoding, with one KV cache for each layer -> y (B, n, C)."""
        for layer, kv_cache in zip(self.layers, kv_caches, strict=True):
            x = layer.extend(x, kv_cache, *context)
        return x if self.norm is None else self.norm(x)


def make_self_attention(
    config: TransformerConfig,
    positions: AttentionPositions | None,
    bidirectional: bool,
    rng: np.random.Generator | None,
    dtype: DTypeLike,
) -> SelfAttention:
    """The self-attention for `config`."""
    attention = SelfAttention(
        config.d_model,
        config.num_heads,
        num_kv_heads=config.num_kv_heads,
        dropout_rate=config.attention_dropout,
        positions=positions,
        scale=None if config.scale_scores else 1.0,
        kind=make_attention(config, bidirectional),
        bias=config.bias,
        qkv_bias=config.qkv_bias,
        d_k=config.d_k,
        d_v=config.d_v,
        rng=rng,
        dtype=dtype,
    )
    if config.qk_norm:
        attention.qkv = NormalizedProjection(
            attention.qkv, attention.widths, attention.d_k, eps=config.norm_eps, dtype=dtype
        )
    return attention


def make_cross_attention(
    config: TransformerConfig, rng: np.random.Generator | None, dtype: DTypeLike
) -> CrossAttention:
    """The cross-attention for `config`."""
    return CrossAttention(
        config.d_model,
        config.num_heads,
        num_kv_heads=config.num_kv_heads,
        dropout_rate=config.attention_dropout,
        scale=None if config.scale_scores else 1.0,
        kind=make_cross_attention_kind(config),
        bias=config.bias,
        d_k=config.d_k,
        d_v=config.d_v,
        rng=rng,
        dtype=dtype,
    )


def make_feed_forward(config: TransformerConfig, rng: np.random.Generator | None, dtype: DTypeLike) -> Layer:
    """The feed-forward network for `config`, or its mixture of several."""
    if config.num_experts is not None:
        return MixtureOfExperts(config, rng=rng, dtype=dtype)
    return FeedForward(
        config.d_model,
        config.d_ff,
        activation=config.activation,
        bias=config.bias,
        dropout_rate=config.ffn_dropout,
        rng=rng,
        dtype=dtype,
    )


def add_and_norm(sublayer: Layer, config: TransformerConfig, dtype: DTypeLike) -> Residual:
    """`sublayer` inside a residual connection with dropout and normalisation, for `config`."""
    return Residual(
        sublayer,
        config.d_model,
        dropout_rate=config.dropout,
        norm=config.norm,
        normalization=config.normalization,
        norm_eps=config.norm_eps,
        dtype=dtype,
    )

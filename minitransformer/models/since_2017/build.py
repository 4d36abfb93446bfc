"""Makes the parts of models that came after the paper: each method reads the fields that it is about."""

import dataclasses
from collections.abc import Callable
from typing import Any

from minitransformer.config import Rope, Strided, TransformerConfig, Windowed
from minitransformer.core import Layer, Parameter
from minitransformer.functional.since_2017.patterns import Pattern
from minitransformer.layers import (
    ActivatedFeedForward,
    AlibiPositions,
    CrossAttention,
    Decoder,
    DecoderLayer,
    Encoder,
    EncoderLayer,
    InputEmbedding,
    LearnedPositions,
    Linear,
    MixtureOfExperts,
    OutputProjection,
    RelativePositions,
    Residual,
    RMSNorm,
    RotaryPositions,
    SelfAttention,
)
from minitransformer.layers.since_2017.attention import GeneralCrossAttention, GeneralSelfAttention
from minitransformer.layers.since_2017.attention_kinds import (
    CausalAttention,
    IncrementalAttention,
    LinearAttention,
    TiledAttention,
)
from minitransformer.layers.since_2017.attention_positions import AttentionPositions
from minitransformer.layers.since_2017.experts import RoutedDecoderLayer, RoutedEncoderLayer
from minitransformer.layers.since_2017.qk_norm import NormalizedProjection
from minitransformer.layers.stack import LayerStack
from minitransformer.models.build import Builder


class LaterBuilder(Builder):
    """As `Builder`, for all fields of a configuration."""

    config: TransformerConfig
    positions: AttentionPositions | None = None  # inside the attention of the layer that is made
    bidirectional = True  # whether its self-attention sees later tokens

    def encoder(self) -> Encoder:
        """As `Builder.encoder`."""
        return self._stack(Encoder, LaterBuilder.encoder_layer, bidirectional=True)

    def decoder(self) -> Decoder:
        """As `Builder.decoder`."""
        return self._stack(Decoder, LaterBuilder.decoder_layer, bidirectional=False)

    def decoder_only(self) -> LayerStack:
        """Encoder layers in which no token sees a later one: GPT."""
        return self._stack(LayerStack, LaterBuilder.encoder_layer, bidirectional=False)

    def _stack(self, stack: Any, make_layer: Callable[["LaterBuilder"], Layer], bidirectional: bool) -> Any:
        """N layers, or with share_layers one of them N times (ALBERT, section 3.1), and a last norm if there is one.

        Positions that act inside self-attention are shared by all layers, or by those that are rotated alike.
        """
        config = self.config
        different = 1 if config.share_layers else config.num_layers
        builders = [LaterBuilder(config_of_layer(config, i), **self.options) for i in range(different)]
        shared: dict[Any, AttentionPositions | None] = {}
        for build in builders:
            build.bidirectional, kind = bidirectional, build.config.positions
            if kind not in shared:
                shared[kind] = build.attention_positions()
            build.positions = shared[kind]
        layers = [make_layer(build) for build in builders]
        norm = self.norm() if config.has_final_norm else None
        return stack(layers * (config.num_layers // different), norm, builders[0].positions)

    def encoder_layer(self) -> EncoderLayer:
        """As `Builder.encoder_layer`, of a class that has experts if the configuration has."""
        kind = EncoderLayer if self.config.experts is None else RoutedEncoderLayer
        return kind(self.residual(self.self_attention()), self.residual(self.feed_forward()))

    def decoder_layer(self) -> DecoderLayer:
        """As `Builder.decoder_layer`, of a class that has experts if the configuration has."""
        kind = DecoderLayer if self.config.experts is None else RoutedDecoderLayer
        return kind(*(self.residual(make()) for make in (self.self_attention, self.cross_attention, self.feed_forward)))

    def residual(self, sublayer: Layer) -> Residual:
        """As `Builder.residual`, with the norm where `config.norm` says."""
        placement = self.config.norm
        norm, norm_after = self.norm(), self.norm() if placement == "sandwich" else None
        dropout_rate = self.config.dropout
        return Residual(sublayer, norm, dropout_rate=dropout_rate, placement=placement, norm_after=norm_after)

    def norm(self) -> Layer:
        """LayerNorm or RMSNorm."""
        if self.config.normalization == "layer":
            return super().norm()
        return RMSNorm(self.config.d_model, eps=self.config.norm_eps, dtype=self.dtype)

    def self_attention(self) -> SelfAttention:
        """Self-attention of any kind, with positions inside, grouped queries, other widths, QK-norm."""
        config = self.config
        kind = attention_kind(config, self.bidirectional)
        if self.positions is None and not self._asks_for_general_attention():
            attention = super().self_attention()
            attention.kind = kind
            return attention
        attention = GeneralSelfAttention(
            qkv_bias=config.qkv_bias, positions=self.positions, kind=kind, **self._attention_options()
        )
        if config.qk_norm:
            attention.qkv = NormalizedProjection(
                attention.qkv, attention.widths, attention.d_k, eps=config.norm_eps, dtype=self.dtype
            )
        return attention

    def cross_attention(self) -> CrossAttention:
        """Cross-attention is full, or tiled if self-attention is of another kind.

        Windows and strides are distances within one sequence, and the memory is read as a whole.
        """
        if not self._asks_for_general_attention():
            return super().cross_attention()
        kind = None if self.config.attention == "full" else TiledAttention(Pattern())
        return GeneralCrossAttention(kind=kind, **self._attention_options())

    def _asks_for_general_attention(self):
        config = self.config
        unset = config.num_kv_heads, config.d_k, config.d_v, config.qkv_bias
        full = config.attention == "full" and config.scale_scores and not config.qk_norm
        return not full or any(field is not None for field in unset)

    def _attention_options(self):
        config = self.config
        return {
            "d_model": config.d_model,
            "num_heads": config.num_heads,
            "num_kv_heads": config.num_kv_heads,
            "dropout_rate": config.attention_dropout,
            "scale": None if config.scale_scores else 1.0,
            "bias": config.bias,
            "d_k": config.d_k,
            "d_v": config.d_v,
            **self.options,
        }

    def feed_forward(self) -> Layer:
        """The feed-forward network with any activation, or a mixture of several."""
        experts = self.config.experts
        if experts is None:
            return self._network()
        return MixtureOfExperts(
            Linear(self.config.d_model, experts.count, bias=False, **self.options),
            [self._network() for _ in range(experts.count)],
            experts_per_token=experts.per_token,
            renormalize=experts.renormalize,
            scores=experts.scores,
            balance_weight=experts.balance,
            z_weight=experts.z_loss,
        )

    def _network(self):
        config = self.config
        if config.activation == "relu":
            return super().feed_forward()
        options = {"bias": config.bias, "dropout_rate": config.ffn_dropout, **self.options}
        return ActivatedFeedForward(config.d_model, config.d_ff, activation=config.activation, **options)

    def input_embeddings(self, *matrices: Parameter) -> list[InputEmbedding]:
        """As `Builder.input_embeddings`, with or without the factor, and with learned positions for each matrix."""
        config, scale = self.config, None if self.config.scale_embeddings else 1.0
        std = 1.0 if config.scale_embeddings else config.d_model**-0.5  # the size of the token vectors
        shared = None if config.positions == "learned" else self.input_positions(std)
        return [InputEmbedding(E, shared or self.input_positions(std), config.dropout, scale) for E in matrices]

    def output(self, E: Parameter) -> OutputProjection:
        """As `Builder.output`, with a factor for T5."""
        return OutputProjection(E, self.config.d_model**-0.5 if self.config.scale_output else 1.0)

    def input_positions(self, std: float) -> Layer | None:
        """Sinusoids, learned positions of the initial size `std`, or None for kinds that add nothing to the input."""
        if self.config.positions == "sinusoidal":
            return self.sinusoids()
        if self.config.positions == "learned":
            return LearnedPositions(self.config.max_len, self.config.d_model, std=std, **self.options)
        return None

    def attention_positions(self) -> AttentionPositions | None:
        """The positions that act inside self-attention, or None for kinds that do nothing there."""
        config = self.config
        if isinstance(config.positions, Rope):
            rope = dataclasses.astuple(config.positions)
            return RotaryPositions(config.head_widths[0], config.max_len, *rope, dtype=self.dtype)
        if config.positions == "alibi":
            return AlibiPositions(config.num_heads, dtype=self.dtype)
        if config.positions == "relative":
            return RelativePositions(config.num_heads, bidirectional=self.bidirectional, **self.options)
        return None


def config_of_layer(config: TransformerConfig, layer: int) -> TransformerConfig:
    """The configuration of one layer, counted from 0: `config`, unless its layers differ."""
    kind = config.attention
    if not isinstance(kind, Windowed) or not kind.full_layers:
        return config
    if layer in kind.full_layers:
        return dataclasses.replace(config, attention="tiled")
    positions = config.positions if kind.rope_base is None else Rope(kind.rope_base)
    return dataclasses.replace(config, attention=Windowed(kind.window, kind.num_global), positions=positions)


def attention_kind(config: TransformerConfig, bidirectional: bool) -> IncrementalAttention | LinearAttention:
    """The kind of self-attention for `config`; unless `bidirectional`, no token attends to a later one."""
    if config.attention == "full":
        return IncrementalAttention() if bidirectional else CausalAttention()
    if config.attention == "linear":
        return LinearAttention(causal=not bidirectional)
    kind, causal = config.attention, not bidirectional
    if isinstance(kind, Windowed):
        return TiledAttention(Pattern(causal, kind.window, num_global=kind.num_global))
    if isinstance(kind, Strided):
        return TiledAttention(Pattern(causal, kind.window, kind.stride, kind.num_global))
    return TiledAttention(Pattern(causal))

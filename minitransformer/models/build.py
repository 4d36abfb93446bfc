"""Puts a model together from its layers. Layers are given their parts and know no configuration: this file turns one
into the paper's parts, and since_2017/build.py into those that came later."""

import dataclasses
import importlib
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from minitransformer.config import PaperConfig
from minitransformer.core import Layer, Parameter
from minitransformer.layers import (
    CrossAttention,
    Decoder,
    DecoderLayer,
    Encoder,
    EncoderLayer,
    FeedForward,
    InputEmbedding,
    LayerNorm,
    OutputProjection,
    PositionalEncoding,
    Residual,
    SelfAttention,
)


def builder(config: PaperConfig, rng: np.random.Generator | None = None, dtype: DTypeLike = np.float32) -> "Builder":
    """What makes the parts of a model: a `Builder`, or its subclass, if `config` asks for what came after the paper."""
    papers = {field.name for field in dataclasses.fields(PaperConfig)}
    later = (field for field in dataclasses.fields(config) if field.name not in papers)
    if all(getattr(config, field.name) == field.default for field in later):
        return Builder(config, rng, dtype)
    build = importlib.import_module("minitransformer.models.since_2017.build")  # unread for the paper's model
    return build.LaterBuilder(config, rng, dtype)


class Builder:
    """Makes the parts of the paper's model. All draw their initial weights from `rng`, in the order of the calls.

    With rng=None the weights are zeros, for uses where only shapes matter.
    """

    def __init__(self, config: PaperConfig, rng: np.random.Generator | None, dtype: DTypeLike) -> None:
        self.config = config
        self.dtype = dtype
        self.options: dict[str, Any] = {"rng": rng, "dtype": dtype}

    def encoder(self) -> Encoder:
        """N encoder layers (section 3.1)."""
        return Encoder([self.encoder_layer() for _ in range(self.config.num_layers)])

    def decoder(self) -> Decoder:
        """N decoder layers."""
        return Decoder([self.decoder_layer() for _ in range(self.config.num_layers)])

    def encoder_layer(self) -> EncoderLayer:
        """Self-attention and the feed-forward network, each in its residual connection."""
        return EncoderLayer(self.residual(self.self_attention()), self.residual(self.feed_forward()))

    def decoder_layer(self) -> DecoderLayer:
        """The same, with cross-attention between them."""
        return DecoderLayer(
            self.residual(self.self_attention()),
            self.residual(self.cross_attention()),
            self.residual(self.feed_forward()),
        )

    def residual(self, sublayer: Layer) -> Residual:
        """`sublayer` with its dropout, residual connection and norm (sections 3.1 and 5.4)."""
        return Residual(sublayer, self.norm(), dropout_rate=self.config.dropout)

    def norm(self) -> Layer:
        """Layer normalization."""
        return LayerNorm(self.config.d_model, eps=self.config.norm_eps, dtype=self.dtype)

    def self_attention(self) -> SelfAttention:
        """Self-attention (section 3.2)."""
        config = self.config
        options = {"bias": config.bias, "dropout_rate": config.attention_dropout, **self.options}
        return SelfAttention(config.d_model, config.num_heads, **options)

    def cross_attention(self) -> CrossAttention:
        """Attention of the target to the memory."""
        config = self.config
        options = {"bias": config.bias, "dropout_rate": config.attention_dropout, **self.options}
        return CrossAttention(config.d_model, config.num_heads, **options)

    def feed_forward(self) -> Layer:
        """The feed-forward network (section 3.3)."""
        config = self.config
        options = {"bias": config.bias, "dropout_rate": config.ffn_dropout, **self.options}
        return FeedForward(config.d_model, config.d_ff, **options)

    def input_embeddings(self, *matrices: Parameter) -> list[InputEmbedding]:
        """For each of the matrices E, its token vectors times sqrt(C), plus positions (sections 3.4 and 3.5)."""
        positions = self.sinusoids()
        return [InputEmbedding(E, positions, self.config.dropout) for E in matrices]

    def sinusoids(self) -> Layer:
        """The layer that adds the paper's positions."""
        return PositionalEncoding(self.config.max_len, self.config.d_model, dtype=self.dtype)

    def output(self, E: Parameter) -> OutputProjection:
        """From features to logits."""
        return OutputProjection(E)

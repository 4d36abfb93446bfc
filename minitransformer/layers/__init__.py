"""Layers: the functions of `functional`, together with the parameters that they use."""

from minitransformer.layers.attention import CrossAttention, SelfAttention
from minitransformer.layers.decoder import Decoder, DecoderLayer
from minitransformer.layers.dropout import Dropout
from minitransformer.layers.embedding import Embedding, InputEmbedding, OutputProjection
from minitransformer.layers.encoder import Encoder, EncoderLayer
from minitransformer.layers.feed_forward import FeedForward
from minitransformer.layers.layer_norm import LayerNorm
from minitransformer.layers.linear import Linear
from minitransformer.layers.positions import PositionalEncoding
from minitransformer.layers.residual import Residual

__all__ = [
    "CrossAttention",
    "Decoder",
    "DecoderLayer",
    "Dropout",
    "Embedding",
    "Encoder",
    "EncoderLayer",
    "FeedForward",
    "InputEmbedding",
    "LayerNorm",
    "Linear",
    "OutputProjection",
    "PositionalEncoding",
    "Residual",
    "SelfAttention",
]

"""Layers: the functions of `functional`, together with the parameters that they use."""

from minitransformer.layers.attention import CrossAttention, SelfAttention
from minitransformer.layers.attention_positions import AlibiPositions, RelativePositions, RotaryPositions
from minitransformer.layers.decoder import Decoder, DecoderLayer
from minitransformer.layers.dropout import Dropout
from minitransformer.layers.embedding import Embedding, InputEmbedding, OutputProjection
from minitransformer.layers.encoder import Encoder, EncoderLayer
from minitransformer.layers.feed_forward import FeedForward
from minitransformer.layers.layer_norm import LayerNorm
from minitransformer.layers.linear import Linear
from minitransformer.layers.losses import CrossEntropyLoss
from minitransformer.layers.positions import LearnedPositions, PositionalEncoding
from minitransformer.layers.residual import Residual
from minitransformer.layers.rms_norm import RMSNorm

__all__ = [
    "AlibiPositions",
    "CrossAttention",
    "CrossEntropyLoss",
    "Decoder",
    "DecoderLayer",
    "Dropout",
    "Embedding",
    "Encoder",
    "EncoderLayer",
    "FeedForward",
    "InputEmbedding",
    "LayerNorm",
    "LearnedPositions",
    "Linear",
    "OutputProjection",
    "PositionalEncoding",
    "RMSNorm",
    "RelativePositions",
    "Residual",
    "RotaryPositions",
    "SelfAttention",
]

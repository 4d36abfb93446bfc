"""Layers: the functions of `functional`, together with the parameters that they use."""

from typing import TYPE_CHECKING

from minitransformer.layers.attention import CrossAttention, SelfAttention
from minitransformer.layers.decoder import Decoder, DecoderLayer
from minitransformer.layers.dropout import Dropout
from minitransformer.layers.embedding import Embedding, InputEmbedding, OutputProjection
from minitransformer.layers.encoder import Encoder, EncoderLayer
from minitransformer.layers.feed_forward import FeedForward
from minitransformer.layers.layer_norm import LayerNorm
from minitransformer.layers.linear import Linear
from minitransformer.layers.losses import CrossEntropyLoss
from minitransformer.layers.positions import PositionalEncoding
from minitransformer.layers.residual import Residual
from minitransformer.lazy import importer

if TYPE_CHECKING:
    from minitransformer.layers.before_2017.convolution import ActivatedConv1d, Conv1d
    from minitransformer.layers.before_2017.positions import LearnedPositions
    from minitransformer.layers.before_2017.recurrent import GRU, LSTM
    from minitransformer.layers.since_2017.attention import GeneralCrossAttention, GeneralSelfAttention
    from minitransformer.layers.since_2017.attention_positions import AlibiPositions, RelativePositions, RotaryPositions
    from minitransformer.layers.since_2017.experts import MixtureOfExperts
    from minitransformer.layers.since_2017.feed_forward import ActivatedFeedForward
    from minitransformer.layers.since_2017.lora import LoRALinear, add_lora, lora_adapters, remove_lora
    from minitransformer.layers.since_2017.memory_attention import MemoryAttention
    from minitransformer.layers.since_2017.recompute import Recomputed, recomputed
    from minitransformer.layers.since_2017.rms_norm import RMSNorm

__all__ = [
    "GRU",
    "LSTM",
    "ActivatedConv1d",
    "ActivatedFeedForward",
    "AlibiPositions",
    "Conv1d",
    "CrossAttention",
    "CrossEntropyLoss",
    "Decoder",
    "DecoderLayer",
    "Dropout",
    "Embedding",
    "Encoder",
    "EncoderLayer",
    "FeedForward",
    "GeneralCrossAttention",
    "GeneralSelfAttention",
    "InputEmbedding",
    "LayerNorm",
    "LearnedPositions",
    "Linear",
    "LoRALinear",
    "MemoryAttention",
    "MixtureOfExperts",
    "OutputProjection",
    "PositionalEncoding",
    "RMSNorm",
    "Recomputed",
    "RelativePositions",
    "Residual",
    "RotaryPositions",
    "SelfAttention",
    "add_lora",
    "lora_adapters",
    "recomputed",
    "remove_lora",
]

__getattr__ = importer(
    __name__,
    __all__,
    (
        "since_2017.attention",
        "since_2017.attention_positions",
        "before_2017.convolution",
        "since_2017.experts",
        "since_2017.feed_forward",
        "since_2017.lora",
        "since_2017.memory_attention",
        "before_2017.positions",
        "since_2017.recompute",
        "before_2017.recurrent",
        "since_2017.rms_norm",
    ),
)

"""Whole models, made from `layers`."""

from minitransformer.models.config import BOS, EOS, PAD, TransformerConfig, config_names, named_config
from minitransformer.models.pytorch import from_pytorch, to_pytorch
from minitransformer.models.transformer import Transformer

__all__ = [
    "BOS",
    "EOS",
    "PAD",
    "Transformer",
    "TransformerConfig",
    "config_names",
    "from_pytorch",
    "named_config",
    "to_pytorch",
]

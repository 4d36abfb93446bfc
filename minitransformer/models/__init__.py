"""Whole models, made from `layers`."""

from minitransformer.models.config import BOS, EOS, PAD, TransformerConfig, config_names, named_config
from minitransformer.models.transformer import Transformer

__all__ = ["BOS", "EOS", "PAD", "Transformer", "TransformerConfig", "config_names", "named_config"]

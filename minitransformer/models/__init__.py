"""Whole models, made from `layers`."""

from minitransformer.models.bert import BERT, bert_config
from minitransformer.models.config import TransformerConfig, config_names, named_config
from minitransformer.models.convolutional import ConvConfig, ConvLM
from minitransformer.models.gpt import GPT, gpt_config
from minitransformer.models.transformer import Transformer, t5_config

__all__ = [
    "BERT",
    "GPT",
    "ConvConfig",
    "ConvLM",
    "Transformer",
    "TransformerConfig",
    "bert_config",
    "config_names",
    "gpt_config",
    "named_config",
    "t5_config",
]

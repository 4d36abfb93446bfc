"""Whole models, made from `layers`."""

from minitransformer.models.bert import BERT, bert_config
from minitransformer.models.config import BOS, EOS, PAD, TransformerConfig, config_names, named_config
from minitransformer.models.gpt import GPT, gpt_config
from minitransformer.models.huggingface import from_huggingface, load_huggingface, model_from_huggingface
from minitransformer.models.huggingface_configs import config_from_huggingface
from minitransformer.models.pytorch import from_pytorch, to_pytorch
from minitransformer.models.transformer import Transformer, t5_config

__all__ = [
    "BERT",
    "BOS",
    "EOS",
    "GPT",
    "PAD",
    "Transformer",
    "TransformerConfig",
    "bert_config",
    "config_from_huggingface",
    "config_names",
    "from_huggingface",
    "from_pytorch",
    "gpt_config",
    "load_huggingface",
    "model_from_huggingface",
    "named_config",
    "t5_config",
    "to_pytorch",
]

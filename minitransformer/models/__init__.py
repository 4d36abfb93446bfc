"""Whole models, made from `layers`."""

from minitransformer.config import Seq2SeqConfig, TransformerConfig, config_names, named_config, named_seq2seq_config
from minitransformer.models.bert import BERT, bert_config
from minitransformer.models.convolutional import ConvConfig, ConvLM
from minitransformer.models.gpt import GPT, gpt_config
from minitransformer.models.recurrent import Seq2Seq
from minitransformer.models.transformer import Transformer, t5_config
from minitransformer.models.vision import ViT

__all__ = [
    "BERT",
    "GPT",
    "ConvConfig",
    "ConvLM",
    "Seq2Seq",
    "Seq2SeqConfig",
    "Transformer",
    "TransformerConfig",
    "ViT",
    "bert_config",
    "config_names",
    "gpt_config",
    "named_config",
    "named_seq2seq_config",
    "t5_config",
]

"""Whole models, made from `layers`."""

from typing import TYPE_CHECKING

from minitransformer.config import Seq2SeqConfig, TransformerConfig, config_names, named_config, named_seq2seq_config
from minitransformer.lazy import importer
from minitransformer.models.transformer import Transformer

if TYPE_CHECKING:
    from minitransformer.models.before_2017.convolutional import ConvConfig, ConvLM
    from minitransformer.models.before_2017.recurrent import Seq2Seq
    from minitransformer.models.since_2017.bert import BERT, bert_config
    from minitransformer.models.since_2017.gpt import GPT, gpt_config
    from minitransformer.models.since_2017.t5 import t5_config
    from minitransformer.models.since_2017.vision import ViT

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

__getattr__ = importer(
    __name__,
    __all__,
    (
        "since_2017.bert",
        "before_2017.convolutional",
        "since_2017.gpt",
        "before_2017.recurrent",
        "since_2017.t5",
        "since_2017.vision",
    ),
)

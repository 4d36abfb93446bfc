"""The sizes and switches of all models: every choice is a field, and the papers' own sizes have names."""

from minitransformer.config.base import NORMS, OWN_IDS, ModelConfig, special_ids
from minitransformer.config.predecessors import (
    CELLS,
    CONV_ACTIVATIONS,
    MEMORY_ATTENTION,
    SEQ2SEQ_ATTENTION,
    ConvConfig,
    Seq2SeqConfig,
    named_seq2seq_config,
)
from minitransformer.config.transformer import (
    ACTIVATIONS,
    ATTENTION,
    NORMALIZATIONS,
    POSITIONS,
    SWITCHES,
    TransformerConfig,
    config_names,
    named_config,
)

__all__ = [
    "ACTIVATIONS",
    "ATTENTION",
    "CELLS",
    "CONV_ACTIVATIONS",
    "MEMORY_ATTENTION",
    "NORMALIZATIONS",
    "NORMS",
    "OWN_IDS",
    "POSITIONS",
    "SEQ2SEQ_ATTENTION",
    "SWITCHES",
    "ConvConfig",
    "ModelConfig",
    "Seq2SeqConfig",
    "TransformerConfig",
    "config_names",
    "named_config",
    "named_seq2seq_config",
    "special_ids",
]

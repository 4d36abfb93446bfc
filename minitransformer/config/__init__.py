"""The sizes and switches of all models: every choice is a field, and the papers' own sizes have names."""

from minitransformer.config.base import OWN_IDS, ModelConfig, special_ids
from minitransformer.config.choices import NORMS, Choice, Experts, Rope, Strided, Windowed
from minitransformer.config.flat import flat_fields, nested_fields
from minitransformer.config.paper import PaperConfig
from minitransformer.config.predecessors import (
    CELLS,
    MEMORY_ATTENTION,
    SEQ2SEQ_ATTENTION,
    ConvConfig,
    Seq2SeqConfig,
    named_seq2seq_config,
)
from minitransformer.config.transformer import (
    ATTENTION,
    NORMALIZATIONS,
    POSITIONS,
    SWITCHES,
    TransformerConfig,
    config_names,
    named_config,
)

"""The sizes and switches of a recurrent encoder-decoder, and those of the papers by name."""

import dataclasses
import math
from typing import Any

from minitransformer.checks import check_choice, check_integer, check_number, check_rate, check_switch
from minitransformer.layers.memory_attention import MEMORY_ATTENTION

CELLS = ("lstm", "gru")
SEQ2SEQ_ATTENTION = ("none", *MEMORY_ATTENTION)


@dataclasses.dataclass(frozen=True)
class Seq2SeqConfig:
    """Sizes and switches of a Seq2Seq. Raises ValueError or TypeError, naming the field, for invalid values.

    Fields:
        vocab_size: V, shared by source and target.
        d_model: C, features of a token vector.
        hidden_size: R, units of each layer; in a bidirectional encoder each direction has half of them.
        num_layers: in the encoder and in the decoder.
        cell: "lstm" or "gru".
        attention: "none", one fixed vector (Sutskever et al. 2014); "additive" (Bahdanau et al. 2015); "dot" or
            "general" (Luong et al. 2015); see layers/memory_attention.py.
        bidirectional: the encoder reads in both directions (Bahdanau et al.).
        reverse_source: the encoder reads the source from its end (Sutskever et al.), so that the first words of source
            and target are near each other.
        dropout: on the token vectors, between layers, and before the output (Zaremba et al. 2014).
        forget_bias: at which the forget gates' biases start; see `layers.LSTM`. A GRU has none.
        max_len: the longest sequence that is accepted; the model itself has no limit.
    """

    vocab_size: int
    d_model: int = 256
    hidden_size: int = 256
    num_layers: int = 2
    cell: str = "lstm"
    attention: str = "additive"
    bidirectional: bool = False
    reverse_source: bool = False
    dropout: float = 0.1
    forget_bias: float = 1.0
    max_len: int = 1024

    def __post_init__(self) -> None:
        for name in ("vocab_size", "d_model", "hidden_size", "num_layers", "max_len"):
            check_integer(name, getattr(self, name), least=1)
        check_choice("cell", self.cell, CELLS)
        check_choice("attention", self.attention, SEQ2SEQ_ATTENTION)
        for name in ("bidirectional", "reverse_source"):
            check_switch(name, getattr(self, name))
        if self.bidirectional and self.hidden_size % 2:
            raise ValueError(f"hidden_size must be even for two directions, got {self.hidden_size}")
        check_rate("dropout", self.dropout)
        if not math.isfinite(check_number("forget_bias", self.forget_bias)):
            raise ValueError(f"forget_bias must be finite, got {self.forget_bias}")

    def least_weights(self) -> dict[str, int]:
        """Lower bounds on the number of weights, by the fields that they follow from: for checking a file's claims."""
        return {
            "vocab_size * d_model": self.vocab_size * self.d_model,
            "hidden_size * hidden_size * num_layers": self.hidden_size * self.hidden_size * self.num_layers,
        }

    def table_sizes(self) -> dict[str, int]:
        """Empty: the model has no table that is computed instead of stored."""
        return {}


_NAMED: dict[str, dict[str, Any]] = {
    "tiny": {"d_model": 64, "hidden_size": 128, "num_layers": 1, "max_len": 128, "dropout": 0.0},
    "base": {"d_model": 620, "hidden_size": 1000, "num_layers": 1},
    "big": {"d_model": 1000, "hidden_size": 1000, "num_layers": 4},
}


def named_seq2seq_config(name: str, vocab_size: int, **changes: Any) -> Seq2SeqConfig:
    """The configuration called `name`: "tiny" (for the toy tasks, no dropout), "base" or "big".

    "base" has the sizes of Bahdanau et al. 2015, "big" those of Sutskever et al. 2014. `changes` replaces single
    fields. Raises ValueError for an unknown name, and as Seq2SeqConfig does.
    """
    check_choice("configuration", name, _NAMED)
    return Seq2SeqConfig(vocab_size=vocab_size, **{**_NAMED[name], **changes})

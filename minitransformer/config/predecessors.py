"""The sizes and switches of the models before the Transformer: recurrent and convolutional ones."""

import dataclasses
import math
from typing import Any

from minitransformer.checks import check_choice, check_number
from minitransformer.config.base import ModelConfig
from minitransformer.config.choices import NORMS
from minitransformer.functional.since_2017.activations import CONV_ACTIVATIONS

CELLS = ("lstm", "gru")
MEMORY_ATTENTION = ("additive", "dot", "general")
SEQ2SEQ_ATTENTION = ("none", *MEMORY_ATTENTION)


@dataclasses.dataclass(frozen=True)
class Seq2SeqConfig(ModelConfig):
    """Sizes and switches of a Seq2Seq. Raises ValueError or TypeError, naming the field, for invalid values.

    Fields:
        vocab_size: V, shared by source and target.
        d_model: C, features of a token vector.
        hidden_size: R, units of each layer; in a bidirectional encoder each direction has half of them.
        num_layers: in the encoder and in the decoder.
        cell: "lstm" or "gru".
        attention: "none", one fixed vector (Sutskever et al. 2014); "additive" (Bahdanau et al. 2015); "dot" or
            "general" (Luong et al. 2015); see layers/since_2017/memory_attention.py.
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
        sizes = ("vocab_size", "d_model", "hidden_size", "num_layers", "max_len")
        self._check(sizes, rates=["dropout"], switches=("bidirectional", "reverse_source"))
        check_choice("cell", self.cell, CELLS)
        check_choice("attention", self.attention, SEQ2SEQ_ATTENTION)
        if self.bidirectional and self.hidden_size % 2:
            raise ValueError(f"hidden_size must be even for two directions, got {self.hidden_size}")
        if self.start is not None and self.start == self.padding:
            raise ValueError(f"start and padding must differ: no step reads padding, got {self.start} for both")
        if not math.isfinite(check_number("forget_bias", self.forget_bias)):
            raise ValueError(f"forget_bias must be finite, got {self.forget_bias}")


_NAMED_SEQ2SEQ: dict[str, dict[str, Any]] = {
    "tiny": {"d_model": 64, "hidden_size": 128, "num_layers": 1, "max_len": 128, "dropout": 0.0},
    "base": {"d_model": 620, "hidden_size": 1000, "num_layers": 1},
    "big": {"d_model": 1000, "hidden_size": 1000, "num_layers": 4},
}


def named_seq2seq_config(name: str, vocab_size: int, **changes: Any) -> Seq2SeqConfig:
    """The configuration called `name`: "tiny" (for the toy tasks, no dropout), "base" or "big".

    "base" has the sizes of Bahdanau et al. 2015, "big" those of Sutskever et al. 2014. `changes` replaces single
    fields. Raises ValueError for an unknown name, and as Seq2SeqConfig does.
    """
    check_choice("configuration", name, _NAMED_SEQ2SEQ)
    return Seq2SeqConfig(vocab_size=vocab_size, **{**_NAMED_SEQ2SEQ[name], **changes})


@dataclasses.dataclass(frozen=True)
class ConvConfig(ModelConfig):
    """Sizes and switches of a `ConvLM`. Raises ValueError or TypeError, naming the field, for invalid values.

    Fields:
        vocab_size: V.
        d_model: C, features per token.
        num_layers: convolutions, each inside a residual connection.
        kernel_size: K, the tokens that one output of a layer reads.
        dilation: layer l reads every dilation^l-th token, l = 0, 1, ...; 1 is a convolution without gaps, and with 2
            the reach doubles from layer to layer (WaveNet, ByteNet).
        activation: "glu" as in ConvS2S, or "relu".
        dropout: on every layer's output and on the embeddings.
        norm: where the layers normalize: "post", "pre" or "sandwich"; see layers/residual.py.
        norm_eps: inside the root of every LayerNorm.
        tie_embeddings: the output projection uses the matrix of the embeddings.
    """

    vocab_size: int
    d_model: int = 512
    num_layers: int = 6
    kernel_size: int = 3
    dilation: int = 1
    activation: str = "glu"
    dropout: float = 0.1
    norm: str = "post"
    norm_eps: float = 1e-5
    tie_embeddings: bool = True

    def __post_init__(self) -> None:
        sizes = ("vocab_size", "d_model", "num_layers", "kernel_size", "dilation")
        self._check(sizes, rates=["dropout"], switches=["tie_embeddings"])
        check_choice("norm", self.norm, NORMS)
        self._check_norm_eps()
        check_choice("activation", self.activation, CONV_ACTIVATIONS)

    @property
    def dilations(self) -> tuple[int, ...]:
        """The dilation of each layer, first layer first."""
        return tuple(self.dilation**layer for layer in range(self.num_layers))

    @property
    def receptive_field(self) -> int:
        """The number of tokens that one output of the whole model depends on."""
        return 1 + (self.kernel_size - 1) * sum(self.dilations)

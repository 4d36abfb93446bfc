"""The sizes and switches of a model, and the paper's own choices by name."""

import dataclasses

from minitransformer.checks import check_choice, check_heads, check_rate
from minitransformer.layers.residual import NORMS

PAD, BOS, EOS = 0, 1, 2  # padding, begin and end of sequence: the first ids of every vocabulary


@dataclasses.dataclass(frozen=True)
class TransformerConfig:
    """Sizes and switches of an encoder-decoder; the defaults are the paper's base model (table 3).

    Raises ValueError, naming the field, for values that no model can have.
    """

    vocab_size: int  # V, shared by source and target
    d_model: int = 512  # C, features per token
    num_heads: int = 8  # h in the paper; d_k = d_v = d_model / h
    d_ff: int = 2048  # features inside the feed-forward network
    num_layers: int = 6  # N, in each of the two stacks
    dropout: float = 0.1  # P_drop, on every sub-layer's output and on the embeddings
    attention_dropout: float = 0.0  # on the attention weights; not in the paper's text
    ffn_dropout: float = 0.0  # between the two matrices of the feed-forward network; not in the paper's text
    label_smoothing: float = 0.1  # epsilon_ls
    norm: str = "post"  # "post" as in the paper, or "pre"; see layers/residual.py
    final_norm: bool | None = None  # a LayerNorm after each stack; None: only with pre-norm, which needs it
    tie_embeddings: bool = True  # source, target and output share one matrix (section 3.4)
    max_len: int = 1024  # positions; the paper's sinusoids have no limit, our table does

    def __post_init__(self):
        for name in ("vocab_size", "d_model", "num_heads", "d_ff", "num_layers", "max_len"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, got {getattr(self, name)}")
        for name in ("dropout", "attention_dropout", "ffn_dropout", "label_smoothing"):
            check_rate(name, getattr(self, name))
        check_heads(self.d_model, self.num_heads)
        check_choice("norm", self.norm, NORMS)
        if self.d_model % 2:
            raise ValueError(f"d_model must be even for sinusoidal positions, got {self.d_model}")

    @property
    def has_final_norm(self):
        """Whether a LayerNorm follows the last layer of each stack."""
        return self.norm == "pre" if self.final_norm is None else self.final_norm


_NAMED = {
    "tiny": {"d_model": 64, "num_heads": 4, "d_ff": 256, "num_layers": 2, "max_len": 128},
    "base": {},
    "big": {"d_model": 1024, "num_heads": 16, "d_ff": 4096, "dropout": 0.3},
}


def config_names():
    """The names that `named_config` knows."""
    return tuple(_NAMED)


def named_config(name, vocab_size, **changes):
    """The configuration called `name`: "tiny" (for the toy tasks), "base" or "big" (paper table 3).

    `changes` replaces single fields. Raises ValueError for an unknown name.
    """
    check_choice("configuration", name, config_names())
    return TransformerConfig(vocab_size=vocab_size, **{**_NAMED[name], **changes})

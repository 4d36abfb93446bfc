"""The sizes of the paper's model, and those that have a name."""

import dataclasses
from typing import Any

from minitransformer.checks import check_heads
from minitransformer.config.base import ModelConfig

SIZES: dict[str, dict[str, Any]] = {
    "tiny": {"d_model": 64, "num_heads": 4, "d_ff": 256, "num_layers": 2, "max_len": 128, "dropout": 0.0},
    "base": {},
    "big": {"d_model": 1024, "num_heads": 16, "d_ff": 4096, "dropout": 0.3},
}  # tiny is for the toy tasks, the others are the paper's (table 3)


@dataclasses.dataclass(frozen=True)
class PaperConfig(ModelConfig):
    """What the paper's model needs to be told; the defaults are its base model (table 3).

    A `TransformerConfig` has these fields, and those that later models need. Raises ValueError or TypeError, naming the
    field, for invalid values.
    """

    vocab_size: int  # V, shared by source and target
    d_model: int = 512  # C, features per token
    num_heads: int = 8  # h in the paper
    d_ff: int = 2048  # features inside the feed-forward network
    num_layers: int = 6  # N, in each of the two stacks
    dropout: float = 0.1  # P_drop, on every sub-layer's output and on the embeddings
    attention_dropout: float = 0.0  # on the attention weights; not in the paper's text
    ffn_dropout: float = 0.0  # between the two matrices of the feed-forward network; not in the paper's text
    tie_embeddings: bool | str = True  # source, target and output share E (section 3.4); "inputs": without the output
    max_len: int = 1024  # positions; the paper's sinusoids have no limit, but our table of them has one
    norm_eps: float = 1e-5  # inside the root of every normalization; the paper does not give it
    bias: bool = True  # in every Linear

    def __post_init__(self) -> None:
        self._check(
            sizes=("vocab_size", "d_model", "num_heads", "d_ff", "num_layers", "max_len"),
            rates=("dropout", "attention_dropout", "ffn_dropout"),
            switches=["bias"],
        )
        self._check_heads()
        self._check_positions()
        self._check_norm_eps()
        if not isinstance(self.tie_embeddings, bool) and self.tie_embeddings != "inputs":
            raise TypeError(f"tie_embeddings must be True, False or 'inputs', got {self.tie_embeddings!r}")

    def _check_heads(self):
        check_heads(self.d_model, self.num_heads)

    def _check_positions(self):
        if self.d_model % 2:
            raise ValueError(f"d_model must be even for sinusoidal positions, got {self.d_model}")

    @property
    def needs_causal_mask(self) -> bool:
        """Whether a model must give attention a causal mask; other kinds may know the order of the tokens."""
        return True

    @property
    def has_tied_output(self) -> bool:
        """Whether the output projection uses the matrix of the (source) embeddings."""
        return self.tie_embeddings is True

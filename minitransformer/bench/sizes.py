"""The models and batches that are timed."""

from typing import NamedTuple

import numpy as np

from minitransformer.data import Batch
from minitransformer.inspection import training_flops
from minitransformer.models import TransformerConfig
from minitransformer.vocabulary import PAD


class Size(NamedTuple):
    """A model and a batch; source and target have the same length."""

    name: str
    vocab_size: int
    d_model: int
    num_heads: int
    d_ff: int
    num_layers: int
    batch: int
    length: int

    def config(self, dropout: float) -> TransformerConfig:
        """The model's configuration, with dropout in the paper's places."""
        sizes = {key: getattr(self, key) for key in ("vocab_size", "d_model", "num_heads", "d_ff", "num_layers")}
        return TransformerConfig(**sizes, dropout=dropout, max_len=self.length)

    def make_batch(self, seed: int = 0) -> Batch:
        """Random tokens; in a quarter of the sequences, the last quarter is padding."""
        shape = (self.batch, self.length)
        arrays = [np.random.default_rng([seed, i]).integers(3, self.vocab_size, shape) for i in range(3)]
        for ids in arrays:
            ids[: self.batch // 4, self.length - self.length // 4 :] = PAD
        return Batch(*arrays)

    @property
    def tokens(self) -> int:
        """Source and target tokens in a batch, including padding, which costs the same."""
        return 2 * self.batch * self.length

    @property
    def matmul_flops(self) -> float:
        """Multiplications and additions in all matrix products of a training step; see `inspection.training_flops`."""
        N = self.batch * self.length
        return sum(training_flops(self.config(0.0), N, N, self.length, self.length).values())


SIZES = {
    size.name: size
    for size in (
        Size("tiny", 16, 64, 4, 256, 2, batch=64, length=12),
        Size("small", 1000, 128, 4, 512, 2, batch=64, length=32),
        Size("medium", 8000, 256, 8, 1024, 3, batch=32, length=64),
        Size("base-like", 8000, 512, 8, 2048, 6, batch=8, length=64),
    )
}

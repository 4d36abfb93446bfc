"""Incremental decoding with a recurrent decoder: its state is all that it remembers, however long the text."""

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from minitransformer.backend import to_device, xp
from minitransformer.checks import check_integer
from minitransformer.decoding.incremental import check_rows
from minitransformer.layers import InputEmbedding, MemoryAttention, OutputProjection
from minitransformer.layers.recurrent import RecurrentStack
from minitransformer.vocabulary import BOS, PAD


class RecurrentEncoderDecoder(Protocol):
    """The parts of a Seq2Seq that its decoding state uses."""

    target_embedding: InputEmbedding
    decoder: RecurrentStack
    attention: MemoryAttention | None
    output: OutputProjection

    def encode(self, source: np.ndarray) -> tuple[Any, Any]:
        """source (B, S) ids -> the memory (B, S, R) and the decoder's first state, and a cache."""


class RecurrentState:
    """The decoder of a Seq2Seq, for one batch of sources (B, S).

    Unlike a KV cache, the decoder's state does not grow with the text. With attention the memory is kept as well.
    Raises ValueError if `max_new_tokens` is less than 1; there is no other limit.
    """

    def __init__(self, model: RecurrentEncoderDecoder, source: np.ndarray, max_new_tokens: int) -> None:
        check_integer("max_new_tokens", max_new_tokens, least=1)
        self.model = model
        self.prompt = np.full((len(source), 1), BOS, dtype=source.dtype)
        (self.memory, self.state), _ = model.encode(source)
        self.batch = len(source)
        self.sources = np.arange(len(source))  # which source each row reads
        self.allowed = to_device(source != PAD)[:, None]  # (B, 1, S)
        self.keys: Any = None if model.attention is None else model.attention.keys(self.memory)[0]

    def extend(self, ids: np.ndarray) -> xp.ndarray:
        """ids (B, n) on the host -> logits (B, V)."""
        check_rows(ids, self.batch)
        model = self.model
        x = model.target_embedding(ids)
        y, self.state = model.decoder(x, self.state, tokens_of(ids))
        y = y[:, -1:]
        if model.attention is not None:
            y, _ = model.attention.attend(y, self.memory, self.keys, self.allowed)
        return model.output(y)[:, 0]

    def select(self, rows: Sequence[int] | np.ndarray) -> None:
        """Keep the sequences `rows` (integers on the host), in this order."""
        kept = to_device(np.asarray(rows))
        self.batch = len(rows)
        self.state = tuple(array[:, kept] for array in self.state)
        before, self.sources = self.sources, self.sources[rows]
        if self.keys is not None and not np.array_equal(before, self.sources):  # see TransformerState.select
            self.memory, self.keys, self.allowed = self.memory[kept], self.keys[kept], self.allowed[kept]


def tokens_of(ids: np.ndarray) -> xp.ndarray | None:
    """Which of the ids (B, T) on the host are tokens and not padding -> boolean (B, T) on the device; None if all."""
    tokens = ids != PAD
    return None if tokens.all() else to_device(tokens)

"""What decoding needs from a model and from its decoding state; any object with these methods will do."""

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from minitransformer.backend import xp
from minitransformer.layers import Decoder, InputEmbedding, OutputProjection
from minitransformer.layers.stack import LayerStack


class DecodingState(Protocol):
    """A batch of B sequences that a model reads token by token."""

    def extend(self, ids: np.ndarray) -> xp.ndarray:
        """Read ids (B, n) on the host, the next n tokens -> logits (B, V) of the token after them."""

    def select(self, rows: Sequence[int] | np.ndarray) -> None:
        """Keep the sequences `rows` (repeats allowed), in this order, as beam search needs."""


class PromptedState(DecodingState, Protocol):
    """A decoding state that knows what to read first."""

    prompt: np.ndarray  # ids (B, n) on the host


class DecodingModel(Protocol):
    """A model that can decode: Transformer, GPT and Seq2Seq."""

    def decoding_state(self, source: np.ndarray, max_new_tokens: int, /) -> PromptedState:
        """A state for sources or prompts (B, S), padded at the end, and at most `max_new_tokens` new tokens."""


class EncoderDecoder(Protocol):
    """The parts of a Transformer that its decoding state uses."""

    target_embedding: InputEmbedding
    decoder: Decoder
    output: OutputProjection

    config: Any  # the sizes and switches

    def encode(self, source: np.ndarray) -> tuple[xp.ndarray, Any]:
        """source (B, S) ids -> memory (B, S, C) and a cache."""

    def target_allowed(self, ids: np.ndarray, start: int = 0) -> xp.ndarray:
        """Which of the target's ids (B, T), the first at position `start`, may be attended to -> (B, 1, 1, T)."""


class DecoderOnly(Protocol):
    """The parts of a GPT that its decoding state uses."""

    embedding: InputEmbedding
    blocks: LayerStack
    output: OutputProjection

    config: Any  # the sizes and switches

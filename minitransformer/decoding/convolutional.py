"""Incremental decoding of a convolutional model: each layer keeps as many of its last inputs as its kernel reads."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from minitransformer.backend import to_device, xp
from minitransformer.checks import check_integer
from minitransformer.decoding.incremental import check_rows, left_padded


class ConvState:
    """A convolutional language model, for `batch` texts that begin with `padding` (B,) tokens of padding.

    Prompts of different lengths are padded on the left, and every layer reads the padding as zeros. Unlike a KV cache,
    the buffers do not grow, so there is no longest text. `prompt` (B, 0) is empty, except in a state made by
    `for_prompts`.
    """

    def __init__(self, model: Any, batch: int, padding: np.ndarray | None = None) -> None:
        self.model = model
        self.batch = check_integer("batch", batch, least=0)
        self.prompt = np.empty((batch, 0), dtype=np.int64)
        self.buffers = [block.sublayer.conv.make_buffer(batch) for block in model.blocks]
        self.length = 0
        self.padding = None if padding is None or not np.any(padding) else np.asarray(padding)

    @classmethod
    def for_prompts(cls, model: Any, prompts: np.ndarray, max_new_tokens: int) -> "ConvState":
        """A state that continues `prompts` (B, T), padded at the end; ValueError if `max_new_tokens` is less than 1."""
        check_integer("max_new_tokens", max_new_tokens, least=1)
        prompt, padding = left_padded(prompts)
        state = cls(model, len(prompt), padding)
        state.prompt = prompt
        return state

    def extend(self, ids: np.ndarray) -> xp.ndarray:
        """ids (B, n) on the host -> logits (B, V)."""
        check_rows(ids, self.batch)
        model, mask = self.model, None
        if self.padding is not None and self.length < self.padding.max():
            mask = to_device(np.arange(self.length, self.length + ids.shape[1]) >= self.padding[:, None])
        self.length += ids.shape[1]
        x, _ = model.embedding.forward(ids)
        for block, buffer in zip(model.blocks, self.buffers, strict=True):
            x = block.extend(x, buffer, mask)
        y = x[:, -1:] if model.norm is None else model.norm(x[:, -1:])
        return model.output(y)[:, 0]

    def select(self, rows: Sequence[int] | np.ndarray) -> None:
        """Keep the sequences `rows` (integers on the host), in this order."""
        if self.padding is not None:
            self.padding = self.padding[rows]
        self.batch = len(rows)
        kept = to_device(np.asarray(rows))
        for buffer in self.buffers:
            buffer.select(kept)

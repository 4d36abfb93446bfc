"""Incremental decoding of recurrent and convolutional models: what they keep does not grow with the text."""

from typing import Any

import numpy as np

from minitransformer.backend import to_device
from minitransformer.decoding.faster.states import ModelState, SourceState, extend
from minitransformer.models.before_2017.recurrent import tokens_of


class RecurrentState(SourceState):
    """The decoder of a Seq2Seq: its state is all that it remembers, however long the text; with attention, the memory.

    There is no limit on the tokens that it reads.
    """

    def __init__(self, model: Any, prompt: np.ndarray, max_len: int | None, source: np.ndarray) -> None:
        super().__init__(model, prompt)
        (self.memory, self.state), _ = model.encode(source)
        self.allowed = to_device(model.config.tokens(source))[:, None]  # (B, 1, S)
        self.keys: Any = None if model.attention is None else model.attention.keys(self.memory)[0]

    def _extend(self, ids):
        model = self.model
        y, self.state = model.decoder(model.target_embedding(ids), self.state, tokens_of(ids, model.config))
        y = y[:, -1:]
        if model.attention is not None:
            y, _ = model.attention.attend(y, self.memory, self.keys, self.allowed)
        return model.output(y)[:, 0]

    def _select(self, rows, kept):
        self.state = tuple(array[:, kept] for array in self.state)
        if self._selects_sources(rows) and self.keys is not None:
            self.memory, self.keys, self.allowed = self.memory[kept], self.keys[kept], self.allowed[kept]


class ConvState(ModelState):
    """A convolutional language model: each layer keeps as many of its last inputs as its kernel reads.

    Every layer reads padding as zeros. Unlike a KV cache, the buffers do not grow, so there is no longest text.
    """

    def __init__(
        self, model: Any, prompt: np.ndarray, max_len: int | None = None, padding: np.ndarray | None = None
    ) -> None:
        super().__init__(model, prompt, padding)
        self.length = 0
        self.buffers = [block.sublayer.conv.make_buffer(self.batch) for block in model.blocks]

    def _extend(self, ids):
        model, mask = self.model, None
        if self.padding is not None and self.length < self.padding.max():
            mask = to_device(np.arange(self.length, self.length + ids.shape[1]) >= self.padding[:, None])
        self.length += ids.shape[1]
        x, _ = model.embedding.forward(ids)
        for block, buffer in zip(model.blocks, self.buffers, strict=True):
            x = extend(block, x, buffer, mask)
        y = x[:, -1:] if model.norm is None else model.norm(x[:, -1:])
        return model.output(y)[:, 0]

    def _select(self, rows, kept):
        for buffer in self.buffers:
            buffer.select(kept)

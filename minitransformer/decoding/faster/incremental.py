"""Incremental decoding of the library's own models: what they computed for earlier tokens is kept.

A Transformer keeps keys and values, a recurrent model its state, a convolutional one the last inputs of each layer. All
of these go around `forward`, so they are right for the library's own layers alone. Every state asks, when it is made,
whether the model has others (`foreign_layers`); then it reads all tokens again for each new one (rereading.py).
"""

from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np

from minitransformer.backend import to_device, xp
from minitransformer.checks import check_integer
from minitransformer.config import OWN_IDS, ModelConfig
from minitransformer.decoding.faster.folded import FEW, FoldedGPT, fold
from minitransformer.decoding.rereading import RereadingState, check_rows, first_tokens, left_padded
from minitransformer.functional import causal_mask
from minitransformer.layers.foreign import foreign_layers
from minitransformer.layers.since_2017.kv_cache import KVCache, make_kv_caches, read_memory

AnyTextState = TypeVar("AnyTextState", bound="TextState")


class ModelState:
    """What all states share. A subclass defines `_extend` and `_select`, for a model without foreign layers."""

    def __init__(
        self, model: Any, batch: int, padding: np.ndarray | None = None, source: np.ndarray | None = None
    ) -> None:
        self.model = model
        self.batch = check_integer("batch", batch, least=0)
        self.padding = None if padding is None or not np.any(padding) else np.asarray(padding)
        self.rereading = RereadingState(model, batch, padding, source) if foreign_layers(model) else None

    def extend(self, ids: np.ndarray) -> xp.ndarray:
        """Read ids (B, n) on the host -> logits (B, V)."""
        check_rows(ids, self.batch)
        return self._extend(ids) if self.rereading is None else self.rereading.extend(ids)

    def select(self, rows: Sequence[int] | np.ndarray) -> None:
        """Keep the sequences `rows` (integers on the host), in this order."""
        self.batch = len(rows)
        self.padding = None if self.padding is None else self.padding[rows]
        if self.rereading is None:
            self._select(np.asarray(rows), to_device(np.asarray(rows)))
        else:
            self.rereading.select(rows)

    def _extend(self, ids):
        raise NotImplementedError

    def _select(self, rows, kept):
        """`rows` on the host and, called `kept`, on the device."""
        raise NotImplementedError


class SourceState(ModelState):
    """The decoder of an encoder-decoder, for one batch of sources (B, S).

    Raises ValueError if `max_new_tokens` is less than 1.
    """

    def __init__(self, model: Any, source: np.ndarray, max_new_tokens: int) -> None:
        check_integer("max_new_tokens", max_new_tokens, least=1)
        super().__init__(model, len(source), source=source)
        self.prompt = first_tokens(model, source)
        self.sources = np.arange(len(source))  # which source each row reads
        if self.rereading is None:
            self._read(source, max_new_tokens)

    def _read(self, source, max_new_tokens):
        raise NotImplementedError

    def _selects_sources(self, rows):
        """Whether rows change their sources; in most steps of beam search those of each source change places."""
        before, self.sources = self.sources, self.sources[rows]
        return not np.array_equal(before, self.sources)


class TransformerState(SourceState):
    """The decoder of a Transformer. It may read padding among the target's tokens, but no token attends to it."""

    def _read(self, source, max_new_tokens):
        memory, _ = self.model.encode(source)
        self.kv_caches = make_kv_caches(self.model.decoder, len(source), max_new_tokens)
        attentions = [layer.cross_attention.sublayer for layer in self.model.decoder.layers]
        self.memory_kv_caches = [read_memory(attention, memory) for attention in attentions]
        self.source_allowed = self.model.source_allowed(source)  # (B, 1, 1, S)
        self.allowed = xp.empty((len(source), 1, 1, max_new_tokens), dtype=bool)  # True: a read token, not padding

    def _extend(self, ids):
        model, kv_cache = self.model, self.kv_caches[0]
        start, end = kv_cache.length, kv_cache.end_after(ids.shape[1])
        x, _ = model.target_embedding.forward(ids, start=start)
        self.allowed[..., start:end] = model.target_allowed(ids, start)
        allowed, among_new = self.allowed[..., :end], allowed_for_new(model.config, kv_cache, ids.shape[1])
        allowed = allowed if among_new is None else allowed & among_new  # (B, 1, n, end)
        y = model.decoder.extend(x, self.kv_caches, self.memory_kv_caches, allowed, self.source_allowed)
        return model.output(y[:, -1:])[:, 0]

    def _select(self, rows, kept):
        self.allowed = self.allowed[kept]
        for kv_cache in self.kv_caches:
            kv_cache.select(kept)
        if self._selects_sources(rows):
            self.source_allowed = self.source_allowed[kept]
            for kv_cache in self.memory_kv_caches:
                kv_cache.select(kept)


class RecurrentState(SourceState):
    """The decoder of a Seq2Seq: its state is all that it remembers, however long the text; with attention, the memory.

    There is no limit on the tokens that it reads.
    """

    def _read(self, source, max_new_tokens):
        (self.memory, self.state), _ = self.model.encode(source)
        self.allowed = to_device(self.model.config.tokens(source))[:, None]  # (B, 1, S)
        attention = self.model.attention
        self.keys: Any = None if attention is None else attention.keys(self.memory)[0]

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


class TextState(ModelState):
    """A language model, for `batch` texts of which the first `padding` (B,) ids do not count.

    Prompts of different lengths are padded on the left, so that all end, and continue, at the same place. No token sees
    the padding. `prompt` (B, 0) is empty, except in a state made by `for_prompts`.
    """

    def __init__(self, model: Any, batch: int, padding: np.ndarray | None = None) -> None:
        super().__init__(model, batch, padding)
        self.prompt = np.empty((batch, 0), dtype=np.int64)

    @classmethod
    def for_prompts(
        cls: type[AnyTextState],
        model: Any,
        prompts: np.ndarray,
        max_new_tokens: int,
        lengths: Sequence[int] | None = None,
    ) -> AnyTextState:
        """A state that continues `prompts` (B, T), padded at the end, by at most `max_new_tokens` tokens.

        See `left_padded` for their `lengths`.
        """
        check_integer("max_new_tokens", max_new_tokens, least=1)
        prompt, padding = left_padded(prompts, model, lengths)
        state = cls._of_length(model, len(prompt), prompt.shape[1] + max_new_tokens, padding)
        state.prompt = prompt
        return state

    @classmethod
    def _of_length(cls, model, batch, max_len, padding):
        return cls(model, batch, padding)


class GPTState(TextState):
    """A decoder-only model, for texts of at most `max_len` tokens. The first token after the padding is at position 0.

    Raises ValueError if `max_len` is less than 1, and for padding before a model with global tokens.
    """

    def __init__(self, model: Any, batch: int, max_len: int, padding: np.ndarray | None = None) -> None:
        check_integer("max_len", max_len, least=1)
        super().__init__(model, batch, padding)
        if self.rereading is not None:
            return
        self.kv_caches = make_kv_caches(model.blocks, batch, max_len)
        self.folded: FoldedGPT | None = None  # made when a few tokens are read for the first time

    @classmethod
    def _of_length(cls, model, batch, max_len, padding):
        state = cls(model, batch, max_len, padding)
        if state.rereading is None and padding.any() and getattr(model.config.attention, "num_global", 0):
            raise ValueError("a model with global tokens can only continue prompts of the same length")
        return state

    def extend_last(self, ids: np.ndarray, count: int) -> xp.ndarray:
        """Read ids (B, n) on the host, in one pass -> logits (B, count, V) after each of the last `count` tokens."""
        check_rows(ids, self.batch)
        return self._extend_last(ids, count) if self.rereading is None else self.rereading.extend_last(ids, count)

    def cut_back(self, count: int) -> None:
        """Forget the last `count` tokens. ValueError, before any change, for attention that cannot."""
        for forgotten in (0, count):  # those that cannot refuse 0 too, before another has changed
            for kept in self.kv_caches if self.rereading is None else [self.rereading]:
                kept.cut_back(forgotten)

    def _extend(self, ids):
        return self._extend_last(ids, 1)[:, 0]

    def _extend_last(self, ids, count):
        model = self.model
        start: Any = self.kv_caches[0].length  # with padding, one start for each sequence
        allowed = allowed_for_new(model.config, self.kv_caches[0], ids.shape[1])
        if self.padding is not None:
            seen = to_device(np.arange(start + ids.shape[1]) >= self.padding[:, None])[:, None, None, :]
            allowed = seen if allowed is None else allowed & seen
            start = start - self.padding
        if ids.shape[1] == 1 or (ids.shape[1] <= FEW and model.config.needs_causal_mask):  # `allowed` says all
            self.folded = self.folded or fold(model)
            if self.folded is not None:
                return self.folded.extend(ids, self.kv_caches, allowed, start, count)
        x, _ = model.embedding.forward(ids, start=start)
        y = model.blocks.extend(x, self.kv_caches, allowed)
        return model.output(y[:, -count:])

    def _select(self, rows, kept):
        for kv_cache in self.kv_caches:
            kv_cache.select(kept)


class SlidingState:
    """A decoder-only model that reads beyond its window: when the window is full, it starts again with the later half.

    A model trained on windows of T tokens has never seen position T + 1. `window` is T, by default the model's
    `max_len`. Each token costs one row of attention, except for those at which half a window is read again.
    """

    def __init__(self, model: Any, batch: int, window: int | None = None) -> None:
        self.model, self.batch = model, batch
        self.window = window or model.config.max_len
        self.read = np.empty((batch, 0), dtype=np.int64)  # the tokens that the current state has read
        self.state = GPTState(model, batch, self.window)

    @property
    def remaining(self) -> int:
        """How many more tokens it can read before it starts again."""
        return self.window - self.read.shape[1]

    def extend(self, ids: np.ndarray) -> xp.ndarray:
        """Read ids (B, n) on the host -> logits (B, V)."""
        return self.extend_last(ids, 1)[:, 0]

    def extend_last(self, ids: np.ndarray, count: int) -> xp.ndarray:
        """Read ids (B, n) on the host -> logits (B, count, V) after each of the last `count` tokens."""
        self.read = np.concatenate([self.read, ids], axis=1)
        if self.read.shape[1] > self.window:
            self.read = ids = self.read[:, -max(1, self.window // 2) :]
            self.state = GPTState(self.model, self.batch, self.window)
        return self.state.extend_last(ids, count)

    def cut_back(self, count: int) -> None:
        """Forget the last `count` tokens. Raises ValueError for a kind of attention that cannot."""
        self.read = self.read[:, : self.read.shape[1] - count]
        self.state.cut_back(count)

    def select(self, rows: Sequence[int] | np.ndarray) -> None:
        """Keep the sequences `rows` (integers on the host), in this order."""
        self.read, self.batch = self.read[rows], len(rows)
        self.state.select(rows)


class ConvState(TextState):
    """A convolutional language model: each layer keeps as many of its last inputs as its kernel reads.

    Every layer reads padding as zeros. Unlike a KV cache, the buffers do not grow, so there is no longest text.
    """

    def __init__(self, model: Any, batch: int, padding: np.ndarray | None = None) -> None:
        super().__init__(model, batch, padding)
        self.length = 0
        if self.rereading is None:
            self.buffers = [block.sublayer.conv.make_buffer(batch) for block in model.blocks]

    def _extend(self, ids):
        model, mask = self.model, None
        if self.padding is not None and self.length < self.padding.max():
            mask = to_device(np.arange(self.length, self.length + ids.shape[1]) >= self.padding[:, None])
        self.length += ids.shape[1]
        x, _ = model.embedding.forward(ids)
        for block, buffer in zip(model.blocks, self.buffers, strict=True):
            x = block.extend(x, buffer, mask)
        y = x[:, -1:] if model.norm is None else model.norm(x[:, -1:])
        return model.output(y)[:, 0]

    def _select(self, rows, kept):
        for buffer in self.buffers:
            buffer.select(kept)


def allowed_for_new(config: Any, kv_cache: KVCache, count: int) -> xp.ndarray | None:
    """The mask (1, 1, n, S) with which n = `count` new tokens attend to cached tokens and, causally, to new ones.

    None for one token, which may attend to everything, and for kinds of attention that need no causal mask.
    """
    if count == 1 or not config.needs_causal_mask:
        return None
    return causal_mask(kv_cache.length + count)[:, :, kv_cache.length :]


def tokens_of(ids: np.ndarray, config: ModelConfig = OWN_IDS) -> xp.ndarray | None:
    """Which of the ids (B, T) on the host are tokens and not padding -> boolean (B, T) on the device; None if all."""
    tokens = config.tokens(ids)
    return None if tokens.all() else to_device(tokens)

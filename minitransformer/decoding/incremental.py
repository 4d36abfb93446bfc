"""Incremental decoding: a sequence is read token by token, and the keys and values of earlier tokens are kept.

Decoding states of all models have the same interface (see interfaces.py):

    state = model.decoding_state(source, max_new_tokens)
    logits = state.extend(ids)     ids (B, n) on the host, the next n tokens -> logits (B, V) of the token after them
    state.select(rows)             keep these sequences, in this order, as beam search does
    state.prompt                   ids (B, n): what to read first
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from minitransformer.backend import to_device, xp
from minitransformer.checks import check_integer
from minitransformer.decoding.folded import FoldedGPT, fold
from minitransformer.decoding.interfaces import DecoderOnly, EncoderDecoder
from minitransformer.functional import causal_mask, padding_mask
from minitransformer.layers.kv_cache import KVCache
from minitransformer.vocabulary import BOS, PAD


def check_rows(ids: np.ndarray, batch: int) -> None:
    """TypeError or ValueError unless `ids` is (batch, n): a single row would be broadcast to all sequences."""
    if not hasattr(ids, "ndim"):
        raise TypeError(f"the next tokens must be an array of ids, got {type(ids).__name__}")
    if ids.ndim != 2 or len(ids) != batch:
        raise ValueError(f"the next tokens must be ids of shape ({batch}, n), got {tuple(ids.shape)}")


def allowed_for_new(config: Any, kv_cache: KVCache, count: int) -> xp.ndarray | None:
    """The mask (1, 1, n, S) with which n = `count` new tokens attend to cached tokens and, causally, to new ones.

    None for one token, which may attend to everything, and for kinds of attention that need no causal mask.
    """
    if count == 1 or not config.needs_causal_mask:
        return None
    return causal_mask(kv_cache.length + count)[:, :, kv_cache.length :]


class TransformerState:
    """The decoder of an encoder-decoder, for one batch of sources (B, S).

    It may read padding among the target's tokens, but no token attends to it, as in the whole model. Raises ValueError
    if `max_new_tokens` is less than 1.
    """

    def __init__(self, model: EncoderDecoder, source: np.ndarray, max_new_tokens: int) -> None:
        check_integer("max_new_tokens", max_new_tokens, least=1)
        self.model = model
        self.prompt = np.full((len(source), 1), BOS, dtype=source.dtype)
        memory, _ = model.encode(source)
        self.kv_caches = model.decoder.make_kv_caches(len(source), max_new_tokens)
        self.memory_kv_caches = model.decoder.read(memory)
        self.source_allowed = padding_mask(to_device(source), PAD)  # (B, 1, 1, S)
        self.allowed = xp.empty((len(source), 1, 1, max_new_tokens), dtype=bool)  # True where a read token is not PAD
        self.sources = np.arange(len(source))  # which source each row reads

    def extend(self, ids: np.ndarray) -> xp.ndarray:
        """ids (B, n) on the host -> logits (B, V)."""
        check_rows(ids, len(self.allowed))
        model, kv_cache = self.model, self.kv_caches[0]
        start, end = kv_cache.length, kv_cache.end_after(ids.shape[1])
        x, _ = model.target_embedding.forward(ids, start=start)
        self.allowed[..., start:end] = model.target_allowed(ids, start)
        allowed, among_new = self.allowed[..., :end], allowed_for_new(model.config, kv_cache, ids.shape[1])
        allowed = allowed if among_new is None else allowed & among_new  # (B, 1, n, end)
        y = model.decoder.extend(x, self.kv_caches, self.memory_kv_caches, allowed, self.source_allowed)
        return model.output(y[:, -1:])[:, 0]

    def select(self, rows: Sequence[int] | np.ndarray) -> None:
        """Keep the sequences `rows` (integers on the host), in this order."""
        kept = to_device(np.asarray(rows))
        self.allowed = self.allowed[kept]
        for kv_cache in self.kv_caches:
            kv_cache.select(kept)
        before, self.sources = self.sources, self.sources[rows]
        if np.array_equal(before, self.sources):
            return  # as in most steps of beam search, which reorders the rows of each source among themselves
        self.source_allowed = self.source_allowed[kept]
        for kv_cache in self.memory_kv_caches:
            kv_cache.select(kept)


def left_padded(ids: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """ids (B, T) padded at the end -> the same padded on the left, and each row's number of padding tokens (B,)."""
    padding = (ids == PAD).sum(axis=1)
    where = (np.arange(ids.shape[1]) - padding[:, None]) % ids.shape[1]
    return np.take_along_axis(ids, where, axis=1), padding


class GPTState:
    """A decoder-only model, for `batch` texts of at most `max_len` tokens that begin with `padding` (B,) tokens of PAD.

    Prompts of different lengths are padded on the left, so that all end, and continue, at the same place. No token
    attends to the padding, and the first token after it is at position 0. `prompt` (B, 0) is empty, except in a state
    made by `for_prompts`. Raises ValueError if `max_len` is less than 1.
    """

    def __init__(self, model: DecoderOnly, batch: int, max_len: int, padding: np.ndarray | None = None) -> None:
        check_integer("max_len", max_len, least=1)
        self.model = model
        self.batch = check_integer("batch", batch, least=0)
        self.prompt = np.empty((batch, 0), dtype=np.int64)
        self.kv_caches = model.blocks.make_kv_caches(batch, max_len)
        self.padding = None if padding is None or not np.any(padding) else np.asarray(padding)
        self.folded: FoldedGPT | None = None  # made when a token is read alone for the first time

    @classmethod
    def for_prompts(cls, model: DecoderOnly, prompts: np.ndarray, max_new_tokens: int) -> "GPTState":
        """A state that continues `prompts` (B, T), padded at the end, by at most `max_new_tokens` tokens."""
        check_integer("max_new_tokens", max_new_tokens, least=1)
        prompt, padding = left_padded(prompts)
        if padding.any() and model.config.num_global:
            raise ValueError("a model with global tokens can only continue prompts of the same length")
        state = cls(model, len(prompt), prompt.shape[1] + max_new_tokens, padding)
        state.prompt = prompt
        return state

    def extend(self, ids: np.ndarray) -> xp.ndarray:
        """ids (B, n) on the host -> logits (B, V)."""
        check_rows(ids, self.batch)
        model = self.model
        start: Any = self.kv_caches[0].length  # with padding, one start for each sequence
        allowed = allowed_for_new(model.config, self.kv_caches[0], ids.shape[1])
        if self.padding is not None:
            seen = to_device(np.arange(start + ids.shape[1]) >= self.padding[:, None])[:, None, None, :]
            allowed = seen if allowed is None else allowed & seen
            start = start - self.padding
        if ids.shape[1] == 1:
            self.folded = self.folded or fold(model)
            if self.folded is not None:
                return self.folded.extend(ids, self.kv_caches, allowed, start)
        x, _ = model.embedding.forward(ids, start=start)
        y = model.blocks.extend(x, self.kv_caches, allowed)
        return model.output(y[:, -1:])[:, 0]

    def select(self, rows: Sequence[int] | np.ndarray) -> None:
        """Keep the sequences `rows` (integers on the host), in this order."""
        if self.padding is not None:
            self.padding = self.padding[rows]
        self.batch = len(rows)
        kept = to_device(np.asarray(rows))
        for kv_cache in self.kv_caches:
            kv_cache.select(kept)


class SlidingState:
    """A decoder-only model that reads beyond its window: when the window is full, it starts again with the later half.

    A model trained on windows of T tokens has never seen position T + 1. `window` is T, by default the model's
    `max_len`. Each token costs one row of attention, except for those at which half a window is read again.
    """

    def __init__(self, model: DecoderOnly, batch: int, window: int | None = None) -> None:
        self.model, self.batch = model, batch
        self.window = window or model.config.max_len
        self.read = np.empty((batch, 0), dtype=np.int64)  # the tokens that the current state has read
        self.state = GPTState(model, batch, self.window)

    def extend(self, ids: np.ndarray) -> xp.ndarray:
        """ids (B, n) on the host -> logits (B, V)."""
        self.read = np.concatenate([self.read, ids], axis=1)
        if self.read.shape[1] > self.window:
            self.read = ids = self.read[:, -max(1, self.window // 2) :]
            self.state = GPTState(self.model, self.batch, self.window)
        return self.state.extend(ids)

    def select(self, rows: Sequence[int] | np.ndarray) -> None:
        """Keep the sequences `rows` (integers on the host), in this order."""
        self.read, self.batch = self.read[rows], len(rows)
        self.state.select(rows)

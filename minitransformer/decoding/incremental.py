"""Incremental decoding: reading a sequence token by token, with the keys and values of earlier tokens kept.

Whatever chooses the next token sees the same interface on every model:

    state = model.decoding_state(source, max_new_tokens)
    logits = state.extend(ids)     ids (B, n) on the host, the next n tokens -> logits (B, V) of the one after them
    state.select(rows)             keep these sequences, in this order, as beam search does
    state.prompt                   ids (B, n): what to read first
"""

import numpy as np

from minitransformer.backend import to_device, xp
from minitransformer.checks import check_integer
from minitransformer.decoding.folded import fold
from minitransformer.functional import causal_mask, padding_mask
from minitransformer.layers.kv_cache import KVCache
from minitransformer.vocabulary import BOS, PAD


def check_max_len(max_len):
    """ValueError unless at least one token can be read."""
    if max_len < 1:
        raise ValueError(f"a decoding state must be able to read at least 1 token, got {max_len}")


def check_rows(ids, batch):
    """ValueError unless ids (B, n) continue as many sequences as the state has; a single row would be broadcast."""
    if not hasattr(ids, "ndim"):
        raise TypeError(f"the next tokens must be an array of ids, got a {type(ids).__name__}")
    if ids.ndim != 2 or len(ids) != batch:
        raise ValueError(f"the next tokens must be ids of shape ({batch}, n), got {tuple(ids.shape)}")


def make_kv_caches(config, batch, max_len, dtype):
    """An empty KV cache for each layer, for `batch` sequences of at most `max_len` tokens."""
    H = config.num_heads
    shape = (batch, H, max_len, config.d_model // H)
    return [KVCache(shape, dtype) for _ in range(config.num_layers)]


def allowed_for_new(kv_cache, count):
    """The mask under which each of `count` new tokens sees all cached ones, itself and the new ones before it.

    None for one token, which may attend to everything.
    """
    return None if count == 1 else causal_mask(kv_cache.length + count)[:, :, kv_cache.length :]


class TransformerState:
    """The decoder of an encoder-decoder, for one batch of sources (B, S).

    It reads padding among the target's tokens too, but no token attends to it, as in the whole model.
    """

    def __init__(self, model, source, max_new_tokens):
        check_max_len(max_new_tokens)
        self.model = model
        self.prompt = np.full((len(source), 1), BOS, dtype=source.dtype)
        memory, _ = model.encode(source)
        self.kv_caches = make_kv_caches(model.config, len(source), max_new_tokens, memory.dtype)
        self.memory_kv_caches = model.decoder.read(memory)
        self.source_allowed = padding_mask(to_device(source), PAD)  # (B, 1, 1, S)
        self.allowed = xp.empty((len(source), 1, 1, max_new_tokens), dtype=bool)  # True where a read token is not PAD

    def extend(self, ids):
        """ids (B, n) on the host -> logits (B, V)."""
        check_rows(ids, len(self.allowed))
        model, kv_cache = self.model, self.kv_caches[0]
        start, end = kv_cache.length, kv_cache.end_after(ids.shape[1])
        x, _ = model.target_embedding.forward(ids, start=start)
        self.allowed[..., start:end] = model.target_allowed(ids, start)
        allowed, among_new = self.allowed[..., :end], allowed_for_new(kv_cache, ids.shape[1])
        allowed = allowed if among_new is None else allowed & among_new  # (B, 1, n, end)
        y = model.decoder.extend(x, self.kv_caches, self.memory_kv_caches, allowed, self.source_allowed)
        return model.output(y[:, -1:])[:, 0]

    def select(self, rows):
        """rows: integers on the host."""
        rows = to_device(np.asarray(rows))
        self.source_allowed, self.allowed = self.source_allowed[rows], self.allowed[rows]
        for kv_cache in (*self.kv_caches, *self.memory_kv_caches):
            kv_cache.select(rows)


def left_padded(ids):
    """ids (B, T) padded at the end -> the same padded in front, and the number of padding tokens (B,) of each row."""
    padding = (ids == PAD).sum(axis=1)
    where = (np.arange(ids.shape[1]) - padding[:, None]) % ids.shape[1]
    return np.take_along_axis(ids, where, axis=1), padding


class GPTState:
    """A decoder-only model, for `batch` texts of at most `max_len` tokens that begin with `padding` (B,) tokens of PAD.

    Prompts of different lengths are padded on the left, so that all end, and continue, at the same place. No token
    attends to the padding, and the first token after it is at position 0. `prompt` is None here;
    `GPT.decoding_state` sets it.
    """

    def __init__(self, model, batch, max_len, padding=None):
        check_max_len(max_len)
        self.model = model
        self.prompt = None
        self.batch = check_integer("batch", batch, least=0)
        self.kv_caches = make_kv_caches(model.config, batch, max_len, model.output.E.data.dtype)
        self.padding = None if padding is None or not np.any(padding) else np.asarray(padding)
        self.folded = None  # the model folded for single tokens, made when the first one comes alone

    @classmethod
    def for_prompts(cls, model, prompts, max_new_tokens):
        """A state that continues `prompts` (B, T), padded at the end, by at most `max_new_tokens` tokens."""
        check_max_len(max_new_tokens)
        prompt, padding = left_padded(prompts)
        state = cls(model, len(prompt), prompt.shape[1] + max_new_tokens, padding)
        state.prompt = prompt
        return state

    def extend(self, ids):
        """ids (B, n) on the host -> logits (B, V)."""
        check_rows(ids, self.batch)
        model, start = self.model, self.kv_caches[0].length
        allowed = allowed_for_new(self.kv_caches[0], ids.shape[1])
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

    def select(self, rows):
        """rows: integers on the host."""
        if self.padding is not None:
            self.padding = self.padding[rows]
        self.batch = len(rows)
        rows = to_device(np.asarray(rows))
        for kv_cache in self.kv_caches:
            kv_cache.select(rows)


class SlidingState:
    """A decoder-only model that reads beyond its window: when the window is full, it starts again with the later half.

    A model that was trained on windows of T tokens knows nothing of position T + 1. `window` is T, by default the
    model's `max_len`. Each token costs one row of attention, except for those at which half a window is read again.
    """

    def __init__(self, model, batch, window=None):
        self.model, self.batch = model, batch
        self.window = window or model.config.max_len
        self.read = np.empty((batch, 0), dtype=np.int64)  # the tokens that the current state has read
        self.state = GPTState(model, batch, self.window)

    def extend(self, ids):
        """ids (B, n) on the host -> logits (B, V)."""
        self.read = np.concatenate([self.read, ids], axis=1)
        if self.read.shape[1] > self.window:
            self.read = ids = self.read[:, -max(1, self.window // 2) :]
            self.state = GPTState(self.model, self.batch, self.window)
        return self.state.extend(ids)

    def select(self, rows):
        """rows: integers on the host."""
        self.read, self.batch = self.read[rows], len(rows)
        self.state.select(rows)

"""Reading a sequence token by token, with what was read kept as keys and values (kv): decoding's view of a model.

Whatever chooses the next token sees the same two methods on every model:

    logits = state.extend(ids)     ids (B, n) on the host, the next n tokens -> logits (B, V) of the one after them
    state.select(rows)             go on with these sequences, in this order, as a beam search does
"""

import numpy as np

from minitransformer.backend import to_device, xp
from minitransformer.checks import check_integer
from minitransformer.functional import causal_mask, padding_mask
from minitransformer.layers.kv import KeyValues
from minitransformer.models.config import PAD
from minitransformer.models.folded import fold


def check_room(room):
    """ValueError unless at least one token can be read."""
    if room < 1:
        raise ValueError(f"there must be room for at least 1 token, got {room}")


def check_rows(ids, batch):
    """ValueError unless ids (B, n) go on with as many sequences as the state has; one alone would be broadcast."""
    if not hasattr(ids, "ndim"):
        raise TypeError(f"the next tokens must be an array of ids, got a {type(ids).__name__}")
    if ids.ndim != 2 or len(ids) != batch:
        raise ValueError(f"the next tokens must be ids of shape ({batch}, n), got {tuple(ids.shape)}")


def make_kvs(config, batch, room, dtype):
    """An empty kv for each layer, for `batch` sequences of at most `room` tokens."""
    H = config.num_heads
    shape = (batch, H, room, config.d_model // H)
    return [KeyValues(shape, dtype) for _ in range(config.num_layers)]


def allowed_for_new(kv, count):
    """Each of `count` new tokens sees what is in `kv`, itself and those before it -> a mask, or None for one token."""
    return None if count == 1 else causal_mask(kv.length + count)[:, :, kv.length :]


class TransformerState:
    """The decoder of an encoder-decoder, for one batch of sources (B, S).

    Padding among the tokens is read, too, but nobody attends to it, as in the whole model.
    """

    def __init__(self, model, source, room):
        check_room(room)
        self.model = model
        memory, _ = model.encode(source)
        self.kvs = make_kvs(model.config, len(source), room, memory.dtype)
        self.memory_kvs = model.decoder.read(memory)
        self.source_allowed = padding_mask(to_device(source), PAD)  # (B, 1, 1, S)
        self.allowed = xp.empty((len(source), 1, 1, room), dtype=bool)  # which of the tokens read are no padding

    def extend(self, ids):
        """ids (B, n) on the host -> logits (B, V)."""
        check_rows(ids, len(self.allowed))
        model, kv = self.model, self.kvs[0]
        start, end = kv.length, kv.end_after(ids.shape[1])
        x, _ = model.target_embedding.forward(ids, start=start)
        self.allowed[..., start:end] = model.target_allowed(ids, start)
        allowed, among_new = self.allowed[..., :end], allowed_for_new(kv, ids.shape[1])
        allowed = allowed if among_new is None else allowed & among_new  # (B, 1, n, end)
        y = model.decoder.extend(x, self.kvs, self.memory_kvs, allowed, self.source_allowed)
        return model.output(y[:, -1:])[:, 0]

    def select(self, rows):
        """rows: integers on the host."""
        rows = to_device(np.asarray(rows))
        self.source_allowed, self.allowed = self.source_allowed[rows], self.allowed[rows]
        for kv in (*self.kvs, *self.memory_kvs):
            kv.select(rows)


class GPTState:
    """A decoder-only model, for `batch` texts that begin with `padding` (B,) tokens of padding, or none.

    Beginnings of different lengths are padded on the left, so that all end, and go on, at the same place. Nobody sees
    the padding, and the first token behind it is at position 0.
    """

    def __init__(self, model, batch, room, padding=None):
        check_room(room)
        self.model = model
        self.batch = check_integer("batch", batch, least=0)
        self.kvs = make_kvs(model.config, batch, room, model.output.E.data.dtype)
        self.padding = None if padding is None or not np.any(padding) else np.asarray(padding)
        self.reads_token = None  # the model folded for one token, made when the first comes alone

    def extend(self, ids):
        """ids (B, n) on the host -> logits (B, V)."""
        check_rows(ids, self.batch)
        model, start = self.model, self.kvs[0].length
        allowed = allowed_for_new(self.kvs[0], ids.shape[1])
        if self.padding is not None:
            seen = to_device(np.arange(start + ids.shape[1]) >= self.padding[:, None])[:, None, None, :]
            allowed = seen if allowed is None else allowed & seen
            start = start - self.padding
        if ids.shape[1] == 1:
            self.reads_token = self.reads_token or fold(model)
            if self.reads_token is not None:
                return self.reads_token.extend(ids, self.kvs, allowed, start)
        x, _ = model.embedding.forward(ids, start=start)
        y = model.blocks.extend(x, self.kvs, allowed)
        return model.output(y[:, -1:])[:, 0]

    def select(self, rows):
        """rows: integers on the host."""
        if self.padding is not None:
            self.padding = self.padding[rows]
        self.batch = len(rows)
        rows = to_device(np.asarray(rows))
        for kv in self.kvs:
            kv.select(rows)


class SlidingState:
    """A decoder-only model that reads on beyond its window: when that is full, it begins again with its later half.

    A model that was trained on windows of T tokens knows nothing of position T + 1. `window` is T, by default the
    model's `max_len`. Each token costs one row of attention, but for the ones at which half a window is read again.
    """

    def __init__(self, model, batch, window=None):
        self.model, self.batch = model, batch
        self.window = window or model.config.max_len
        self.read = np.empty((batch, 0), dtype=np.int64)  # what the state of now has read
        self.state = model.begin(batch, self.window)

    def extend(self, ids):
        """ids (B, n) on the host -> logits (B, V)."""
        self.read = np.concatenate([self.read, ids], axis=1)
        if self.read.shape[1] > self.window:
            self.read = ids = self.read[:, -max(1, self.window // 2) :]
            self.state = self.model.begin(self.batch, self.window)
        return self.state.extend(ids)

    def select(self, rows):
        """rows: integers on the host."""
        self.read, self.batch = self.read[rows], len(rows)
        self.state.select(rows)

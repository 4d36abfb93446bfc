"""The KV cache: keys and values of the tokens read so far, so that each new token costs one row of attention."""

from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from minitransformer.backend import to_device, xp
from minitransformer.functional import merge_heads, split_heads
from minitransformer.layers.attention import parts


class KVCache:
    """Keys and values of one attention layer: k and v (B, G, max_len, D), of which the first `length` are filled.

    The values may have another number of features, `d_v`.

    The arrays are allocated once; nothing is ever concatenated. Variables of this type are called `kv_cache`, because
    `cache` always means what backward needs. With grouped queries, G heads of keys serve H heads of queries, and the
    cache is smaller by H / G.
    """

    k: xp.ndarray
    v: xp.ndarray
    length: int

    def __init__(self, shape: tuple[int, int, int, int], dtype: DTypeLike, d_v: int | None = None) -> None:
        self.k, self.v = xp.empty(shape, dtype), xp.empty((*shape[:3], d_v or shape[3]), dtype)
        self.max_len = shape[2]
        self.length = 0

    @property
    def positions(self) -> np.ndarray:
        """The positions of the keys that the last `append` returned, in their order (S,), on the host."""
        return np.arange(self.length)

    @property
    def nbytes(self) -> int:
        """The memory of the arrays, in bytes."""
        return self.k.nbytes + self.v.nbytes

    def end_after(self, count: int) -> int:
        """The length after `count` more positions; ValueError if they do not fit."""
        end = self.length + count
        if end > self.max_len:
            raise ValueError(f"the KV cache holds {self.max_len} positions, but {end} are needed")
        return end

    def append(self, k: xp.ndarray, v: xp.ndarray) -> tuple[xp.ndarray, xp.ndarray]:
        """Write k and v (B, G, n, D) after the filled positions -> all keys and values, views (B, G, length, D)."""
        start, end = self.length, self.end_after(k.shape[2])
        self.k[:, :, start:end], self.v[:, :, start:end] = k, v
        self.length = end
        return self.k[:, :, :end], self.v[:, :, :end]

    def cut_back(self, count: int) -> None:
        """Forget the last `count` positions: the next ones are written over them. ValueError for more than all."""
        if not 0 <= count <= self.length:
            raise ValueError(f"of {self.length} tokens the last {count} cannot be forgotten")
        self.length -= count

    def select(self, rows: xp.ndarray) -> None:
        """Keep the sequences `rows` (integers on the device, repeats allowed), in this order."""
        self.k, self.v = self._selected(self.k, rows), self._selected(self.v, rows)

    def _selected(self, array, rows):
        """`array` with these rows. Unless there are more rows than before, it moves filled positions in place alone."""
        if len(rows) > len(array):
            return array[rows]
        moved = xp.flatnonzero(rows != xp.arange(len(rows)))
        array[moved, :, : self.length] = array[rows[moved], :, : self.length]  # the right side is a copy
        return array[: len(rows)]


class RollingKVCache(KVCache):
    """A ring buffer for windowed attention: the keys and values of the last `window` tokens, however long the text is.

    Position p is in slot p mod window. The order of the keys does not matter to attention; `positions` gives it.
    """

    def __init__(self, shape: tuple[int, int, int, int], dtype: DTypeLike, window: int) -> None:
        B, G, max_len, D = shape
        self.window = min(window, max_len)
        super().__init__((B, G, self.window, D), dtype)
        self.max_len = max_len
        self._positions = np.arange(0)

    @property
    def positions(self) -> np.ndarray:
        """As in `KVCache`."""
        return self._positions

    def append(self, k: xp.ndarray, v: xp.ndarray) -> tuple[xp.ndarray, xp.ndarray]:
        """As in `KVCache` -> the keys and values of the kept tokens, and of the new ones that replace some of them."""
        start, end, W = self.length, self.end_after(k.shape[2]), self.window
        new = np.arange(max(start, end - W), end)  # the new positions that are kept
        if end - start > 1:  # the first new tokens still see tokens that the last ones overwrite
            before = np.arange(max(0, start - W), start)
            slots_before = to_device(before % W)
            all_k, all_v = (
                xp.concatenate([kept[:, :, slots_before], x], axis=2) for kept, x in ((self.k, k), (self.v, v))
            )
            self._positions = np.concatenate([before, np.arange(start, end)])
        first, slots = int(new[0]) - start, to_device(new % W)  # at most W new tokens are kept, the last ones
        self.k[:, :, slots], self.v[:, :, slots] = k[:, :, first:], v[:, :, first:]
        self.length = end
        if end - start > 1:
            return all_k, all_v
        filled = np.arange(min(end, W))
        self._positions = end - 1 - (end - 1 - filled) % W  # the newest position of each slot
        return self.k[:, :, : len(filled)], self.v[:, :, : len(filled)]

    def cut_back(self, count: int) -> None:
        """Raises ValueError: what would be in the window again is lost."""
        raise ValueError("windowed attention cannot be cut back for a draft: new tokens have overwritten old ones")


class LinearAttentionState:
    """What linear attention keeps of the tokens read so far: running sums (B, G, D, D + 1), see `linear_attention`."""

    def __init__(self, shape: tuple[int, int, int, int], dtype: DTypeLike) -> None:
        B, G, self.max_len, D = shape
        self.sums = xp.zeros((B, G, D, D + 1), dtype)
        self.length = 0

    @property
    def nbytes(self) -> int:
        """The memory of the sums, in bytes."""
        return self.sums.nbytes

    def end_after(self, count: int) -> int:
        """The number of tokens read after `count` more. There is no limit."""
        return self.length + count

    def add(self, sums: xp.ndarray, count: int) -> None:
        """Replace the sums by those after `count` more tokens."""
        self.sums, self.length = sums, self.length + count

    def cut_back(self, count: int) -> None:
        """Raises ValueError: no token can be taken out of the sums again, except inexactly."""
        raise ValueError("linear attention cannot be cut back for a draft: it keeps sums, and no single tokens")

    def select(self, rows: xp.ndarray) -> None:
        """Keep the sequences `rows` (integers on the device, repeats allowed), in this order."""
        self.sums = self.sums[rows]


def make_kv_caches(stack: Any, batch: int, max_len: int) -> list[Any]:
    """Empty KV caches for `batch` sequences of at most `max_len` tokens, one for each layer of a `LayerStack`."""
    return [make_kv_cache(layer.self_attention.sublayer, batch, max_len) for layer in stack.layers]


def make_kv_cache(attention: Any, batch: int, max_len: int) -> Any:
    """What decoding keeps of `batch` sequences of at most `max_len` tokens, for one `SelfAttention`."""
    if hasattr(attention, "make_kv_cache"):
        return attention.make_kv_cache(batch, max_len)
    H, W = attention.num_heads, attention.output.W.data
    return KVCache((batch, H, max_len, len(W) // H), W.dtype)


def read_memory(attention: Any, memory: xp.ndarray) -> KVCache:
    """The keys and values of memory (B, S, C), computed once for all tokens, for one `CrossAttention`."""
    heads = getattr(attention, "num_kv_heads", attention.num_heads)
    k, v = (split_heads(each, heads) for each in parts(attention.kv(memory), attention.widths[1:]))
    kv_cache = KVCache(k.shape, k.dtype, v.shape[-1])
    kv_cache.append(k, v)
    return kv_cache


def extend_sublayer(layer: Any, x: xp.ndarray, kv_cache: Any, allowed: xp.ndarray | None = None) -> xp.ndarray:
    """n new tokens x (B, n, C), in decoding -> y (B, n, C), of a `SelfAttention`, `CrossAttention` or other layer.

    Self-attention appends their keys and values to `kv_cache`; of a memory it has been `read_memory`. allowed is
    broadcastable to (B, H, n, S), where S is the number of tokens in it afterwards. A layer that does something else in
    decoding has a method `extend`. Raises ValueError if the KV cache is too short.
    """
    if hasattr(layer, "extend"):
        return layer.extend(x, kv_cache, allowed)
    if hasattr(layer, "qkv"):
        q, k, v = (split_heads(each, layer.num_heads) for each in parts(layer.qkv(x), layer.widths))
        k, v = kv_cache.append(k, v)
    else:
        q, k, v = split_heads(layer.q(x), layer.num_heads), kv_cache.k, kv_cache.v
    y, _ = layer.kind.forward(q, k, v, allowed)
    return layer.output(merge_heads(y))

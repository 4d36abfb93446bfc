"""The KV cache: keys and values of the tokens read so far, so that each new token costs one row of attention."""

from numpy.typing import DTypeLike

from minitransformer.backend import xp


class KVCache:
    """Keys and values of one attention layer: k and v (B, H, max_len, D), of which the first `length` are filled.

    The arrays are allocated once; nothing is ever concatenated. Variables of this type are called `kv_cache`, because
    `cache` always means what backward needs.
    """

    k: xp.ndarray
    v: xp.ndarray
    length: int

    def __init__(self, shape: tuple[int, int, int, int], dtype: DTypeLike) -> None:
        self.k, self.v = xp.empty(shape, dtype), xp.empty(shape, dtype)
        self.length = 0

    def end_after(self, count: int) -> int:
        """The length after `count` more positions; ValueError if they do not fit."""
        end, max_len = self.length + count, self.k.shape[2]
        if end > max_len:
            raise ValueError(f"the KV cache holds {max_len} positions, but {end} are needed")
        return end

    def append(self, k: xp.ndarray, v: xp.ndarray) -> tuple[xp.ndarray, xp.ndarray]:
        """Write k and v (B, H, n, D) after the filled positions -> all keys and values, views (B, H, length, D)."""
        start, end = self.length, self.end_after(k.shape[2])
        self.k[:, :, start:end], self.v[:, :, start:end] = k, v
        self.length = end
        return self.k[:, :, :end], self.v[:, :, :end]

    def select(self, rows: xp.ndarray) -> None:
        """Keep the sequences `rows` (integers on the device, repeats allowed), in this order."""
        self.k, self.v = self.k[rows], self.v[rows]

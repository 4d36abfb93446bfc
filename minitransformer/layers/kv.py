"""What decoding remembers of the tokens it has read, so that each new one costs one row of attention."""

from minitransformer.backend import xp


class KeyValues:
    """Keys and values of one attention layer: k and v (B, H, M, D), of which the first `length` positions are there.

    All the room is taken at the start; nothing is ever concatenated. Always called kv: a cache is for backward.
    """

    def __init__(self, shape, dtype):
        self.k, self.v = xp.empty(shape, dtype), xp.empty(shape, dtype)
        self.length = 0

    def end_after(self, count):
        """The length that `count` more positions would make; ValueError if there is no room for them."""
        end, room = self.length + count, self.k.shape[2]
        if end > room:
            raise ValueError(f"there is room for {room} positions, and this would be number {end}")
        return end

    def append(self, k, v):
        """Write k and v (B, H, n, D) behind what is there -> all keys and all values, views (B, H, length, D)."""
        start, end = self.length, self.end_after(k.shape[2])
        self.k[:, :, start:end], self.v[:, :, start:end] = k, v
        self.length = end
        return self.k[:, :, :end], self.v[:, :, :end]

    def select(self, rows):
        """Keep the sequences `rows` (integers on the device, repeats allowed) in this order."""
        self.k, self.v = self.k[rows], self.v[rows]

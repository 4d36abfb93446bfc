"""The tiles of tiled attention: which heads are computed together, and the bias, mask and dropout of a tile."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from minitransformer.backend import backend_name, to_device, xp
from minitransformer.functional.dropout import DropoutCache, dropout
from minitransformer.functional.since_2017.diagonals import diagonal_sums, toeplitz
from minitransformer.functional.since_2017.patterns import Tile, TilePattern
from minitransformer.system.generators import make_generator

NUMBERS = 2**16  # scores that are computed at one time: a tile of one head, or of several, in the processor's cache
GPU_NUMBERS = 2**24  # 67 MB in float32, for few launches


class TiledAttentionCache(NamedTuple):
    """What `tiled_attention` remembers: no array has T S entries."""

    q: xp.ndarray  # (B, H, T, D)
    k: xp.ndarray  # (B, G, S, D)
    v: xp.ndarray  # (B, G, S, D)
    y: xp.ndarray  # (B, H, T, D)
    log_sum_exp: xp.ndarray  # (B, H, T), the logarithm of the sum over the keys of exp(score)
    allowed: xp.ndarray | None
    bias: xp.ndarray | None  # (H, T, S) or (H, 1, T + S - 1)
    scale: float
    dropout_rate: float
    seed: int | None  # of the dropout masks, or None
    pattern: TilePattern
    tile: tuple[int, int]

    @property
    def weights(self) -> xp.ndarray:
        """The weights (B, H, T, S), computed again and all at once, to look at them."""
        (B, H, T, _), S = self.q.shape, self.k.shape[2]
        weights = xp.zeros((B, H, T, S), self.y.dtype)
        for part in parts(self):
            here = part.batch, part.heads
            for rows in slices(T, self.tile[0]):
                q = part.group(self.q[(*here, rows)]) * self.scale
                for columns, forbidden in part.tiles(rows):
                    scores = self.k[part.batch, part.groups, columns] @ q.swapaxes(-1, -2)
                    part.complete(scores, rows, columns, forbidden)
                    scores -= part.flat(self.log_sum_exp[(*here, rows)])
                    weights[(*here, rows, columns)] = part.by_head(xp.exp(scores).swapaxes(-1, -2))
        return weights


class Part:
    """Some heads of some sequences: few enough for one tile of their scores to stay in the processor's cache.

    b sequences, g key heads and h = g H / G heads. The queries of the heads that share a key head stand one below the
    other, (b, g, n, D) for n = t H / G. So the products need no repeated keys, and dk and dv, the sums over the heads
    of a group, are products too. Scores and weights are (b, g, s, n).
    """

    def __init__(self, cache: TiledAttentionCache, number: int, batch: slice, groups: slice) -> None:
        per_group = cache.q.shape[1] // cache.k.shape[1]
        self.cache, self.number, self.batch, self.groups = cache, number, batch, groups
        self.heads = slice(groups.start * per_group, groups.stop * per_group)

    def group(self, x: xp.ndarray) -> xp.ndarray:
        """x (b, h, t, X) -> (b, g, n, X)."""
        return x.reshape(len(x), self.groups.stop - self.groups.start, -1, x.shape[-1])

    def by_head(self, x: xp.ndarray) -> xp.ndarray:
        """x (b, g, n, X) -> (b, h, t, X): the inverse of `group`."""
        return x.reshape(len(x), self.heads.stop - self.heads.start, -1, x.shape[-1])

    def flat(self, x: xp.ndarray) -> xp.ndarray:
        """One number for each query, x (b, h, t) -> (b, g, 1, n)."""
        return x.reshape(len(x), self.groups.stop - self.groups.start, 1, -1)

    def tiles(self, rows: slice) -> Iterator[Tile]:
        """The tiles of keys that the queries `rows` visit."""
        for columns in slices(self.cache.k.shape[2], self.cache.tile[1]):
            tile = self.cache.pattern.tile(rows, columns)
            if tile is not None:
                yield tile

    def complete(self, scores: xp.ndarray, rows: slice, columns: slice, forbidden: np.ndarray | None) -> None:
        """Add the bias to a tile of scores (b, g, s, n), and set the scores that are not allowed to -inf, in place."""
        cache, (b, g, s, _) = self.cache, scores.shape
        scores = scores.reshape(b, g, s, -1, rows.stop - rows.start)  # (b, g, s, H / G, t)
        if cache.bias is not None:
            scores += _by_key(self._bias(cache.bias, rows, columns)[None], g)
        if forbidden is not None:
            xp.copyto(scores, -xp.inf, where=to_device(forbidden)[:, None])
        if cache.allowed is not None:
            allowed = _cut(cache.allowed, (self.batch, self.heads, rows, columns))
            if backend_name() != "numpy" or not allowed.all():  # a GPU would have to wait for the answer
                xp.copyto(scores, -xp.inf, where=~_by_key(allowed, g))

    def _bias(self, bias, rows, columns):
        """The bias of a tile (h, t, s)."""
        if bias.shape[1] == self.cache.q.shape[2]:
            return bias[self.heads, rows, columns]
        return toeplitz(bias[self.heads, 0, self.distances(rows, columns)], *_lengths(rows, columns))

    def add_bias_gradient(self, dbias: xp.ndarray, dscores: xp.ndarray, rows: slice, columns: slice) -> None:
        """Add the gradient of a tile's scores (b, g, s, n) to `dbias`, which has the shape of the bias."""
        dscores = self.by_head(dscores.sum(axis=0, keepdims=True).swapaxes(-1, -2))[0]  # (h, t, s)
        if dbias.shape[1] == self.cache.q.shape[2]:
            dbias[self.heads, rows, columns] += dscores
        else:
            dbias[self.heads, 0, self.distances(rows, columns)] += diagonal_sums(dscores)

    def distances(self, rows: slice, columns: slice) -> slice:
        """Where a bias by distance has the numbers of a tile: s - t is 1 - T in the first place."""
        least, most = columns.start - (rows.stop - 1), columns.stop - 1 - rows.start
        return slice(least + self.cache.q.shape[2] - 1, most + self.cache.q.shape[2])

    def dropout(self, weights: xp.ndarray, rows: slice, columns: slice) -> tuple[xp.ndarray, DropoutCache | None]:
        """Dropout on a tile of weights: every tile has a generator of its own, so that backward draws the same mask."""
        if self.cache.seed is None:
            return weights, None
        rng = make_generator([self.cache.seed, self.number, rows.start, columns.start])
        return dropout(weights, self.cache.dropout_rate, rng)


def parts(cache: TiledAttentionCache) -> Iterator[Part]:
    """Cut batch and heads into parts."""
    (B, H, T, _), (G, S) = cache.q.shape, cache.k.shape[1:3]
    numbers = min(T, cache.tile[0]) * min(S, cache.tile[1])  # in a tile
    most = NUMBERS if backend_name() == "numpy" else GPU_NUMBERS
    pairs = max(1, most // (numbers * (H // G)))  # of a sequence and a key head
    for batch in slices(B, max(1, pairs // G)):
        for groups in slices(G, min(G, pairs)):
            yield Part(cache, batch.start * G + groups.start, batch, groups)


def slices(length: int, size: int) -> list[slice]:
    """Cut 0 ... length - 1 into slices of `size`."""
    return [slice(start, min(start + size, length)) for start in range(0, length, size)]


def _cut(x, slices):
    """x, which can be broadcast to (B, H, T, S), with four axes, those that are not of length 1 cut."""
    x = x.reshape((1,) * (len(slices) - x.ndim) + x.shape)
    return x[tuple(slice(None) if length == 1 else part for length, part in zip(x.shape, slices, strict=True))]


def _by_key(x, groups):
    """A bias or a mask of scores (b, h or 1, t, s) -> (b, groups or 1, s, h / groups or 1, t)."""
    b, h, t, s = x.shape
    groups = min(groups, h)
    return x.reshape(b, groups, h // groups, t, s).transpose(0, 1, 4, 2, 3)


def _lengths(*slices):
    return [x.stop - x.start for x in slices]

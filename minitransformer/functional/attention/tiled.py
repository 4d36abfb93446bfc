"""Attention in tiles (Dao et al. 2022, "FlashAttention"; Dao 2023): the weights (T, S) never exist as a whole.

Full attention keeps T S weights per head for its backward pass. Here a tile of queries meets one tile of keys after the
other, and the softmax is computed while they pass by. The memory is that of q, k, v and y, and on a CPU it is also
faster, because a tile stays in the processor's cache, and tiles in which nothing is allowed are never visited.
"""

import itertools
import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from minitransformer.backend import to_device, xp
from minitransformer.checks import check_attention, check_generator, check_integer, check_mask, check_rate, check_shape
from minitransformer.functional.attention.patterns import EVERYTHING, TilePattern
from minitransformer.functional.dropout import DropoutCache, dropout, dropout_backward
from minitransformer.functional.reductions import row_dot, row_max, row_sum
from minitransformer.generators import make_generator

NUMBERS = 2**16  # scores that are computed at one time: a tile of one head, or of several, in the processor's cache


class TiledAttentionCache(NamedTuple):
    """What `tiled_attention` remembers: no array has T S entries."""

    q: xp.ndarray  # (B, H, T, D)
    k: xp.ndarray  # (B, G, S, D)
    v: xp.ndarray  # (B, G, S, D)
    y: xp.ndarray  # (B, H, T, D)
    log_sum_exp: xp.ndarray  # (B, H, T, 1), the logarithm of the sum over the keys of exp(score)
    allowed: xp.ndarray | None
    bias: xp.ndarray | None
    scale: float
    dropout_rate: float
    seed: int | None  # of the dropout masks, or None
    pattern: TilePattern
    tile: int

    @property
    def weights(self) -> xp.ndarray:
        """The weights (B, H, T, S), computed again and all at once, to look at them."""
        (B, H, T, _), S = self.q.shape, self.k.shape[2]
        weights = xp.zeros((B, H, T, S), self.y.dtype)
        for part in _parts(self):
            here = part.batch, part.heads
            for rows, columns in itertools.product(_slices(T, self.tile), _slices(S, self.tile)):
                entries = self.pattern.tile(rows, columns)
                if entries is False:
                    continue
                q, k = part.group(self.q[(*here, rows)]), self.k[part.batch, part.groups, columns]
                scores = (q * self.scale) @ k.swapaxes(-1, -2)
                part.complete(scores, rows, columns, entries)
                weights[(*here, rows, columns)] = xp.exp(part.by_head(scores) - self.log_sum_exp[(*here, rows)])
        return weights


def tiled_attention(
    q: xp.ndarray,
    k: xp.ndarray,
    v: xp.ndarray,
    allowed: xp.ndarray | None = None,
    dropout_rate: float = 0.0,
    rng: np.random.Generator | None = None,
    bias: xp.ndarray | None = None,
    scale: float | None = None,
    pattern: TilePattern = EVERYTHING,
    tile: int | None = None,
) -> tuple[xp.ndarray, TiledAttentionCache]:
    """The function of `scaled_dot_product_attention`, computed in tiles of `tile` queries and `tile` keys.

    q (B, H, T, D), k and v (B, G, S, D) for G key heads, of which each serves H / G neighbouring heads of q; the other
    arguments as there. `pattern` says which tiles are visited; a pair must be allowed by `pattern` and by `allowed`.
    Which weights dropout sets to 0 depends on `tile`. Raises TypeError or ValueError for arguments that do not fit.

    Forward    for each tile of queries, over the tiles j of keys, with m the largest score so far:
               m' = max(m, max_i s_ti)        l' = exp(m - m') l + sum_i exp(s_ti - m')
               a' = exp(m - m') a + sum_i exp(s_ti - m') v_i        at the end y = a / l, and log-sum-exp L = m + log l
    Chain      the weights are computed again, p_ti = exp(s_ti - L_t), tile by tile. The softmax needs one number for
               each query, which no longer needs the row of weights:
               D_t = sum_i p_ti dp_ti = sum_i p_ti (dy_t . v_i) = dy_t . y_t
               ds_ti = p_ti (dp_ti - D_t)        the rest as in `scaled_dot_product_attention`
               With dropout, y_t = sum_i m_ti p_ti v_i and dp_ti = m_ti (dy_t . v_i), so D_t = dy_t . y_t holds too.
    Remember   y and L, (D + 1) T numbers for each head instead of T S; and the seed of the dropout masks
    Check      equal to `scaled_dot_product_attention` under the pattern's mask
    """
    check_attention(q, k, v)
    check_rate("dropout_rate", dropout_rate)
    check_generator(rng)
    if q.ndim != 4:
        raise ValueError(f"tiled attention takes q of shape (B, H, T, D), got {tuple(q.shape)}")
    B, H, T, D = q.shape
    S = k.shape[2]
    tile = (128 if S <= 512 else 256) if tile is None else check_integer("tile", tile, least=1)
    check_mask(allowed, (B, H, T, S))
    if bias is not None:
        check_shape("bias", bias, (H, T, S))
    scale = 1.0 / math.sqrt(D) if scale is None else scale
    # a number for this call; with it, backward draws the same dropout masks again. On a GPU, int() waits for the number
    seed = int(rng.integers(0, 2**63 - 1)) if rng is not None and dropout_rate else None
    dtype = xp.result_type(*(x for x in (q, k, v, bias) if x is not None))
    y, log_sum_exp = xp.empty((B, H, T, v.shape[-1]), dtype), xp.empty((B, H, T, 1), dtype)
    cache = TiledAttentionCache(q, k, v, y, log_sum_exp, allowed, bias, scale, dropout_rate, seed, pattern, tile)
    for part in _parts(cache):
        _forward(part)
    return y, cache


def tiled_attention_backward(
    dy: xp.ndarray, cache: TiledAttentionCache
) -> tuple[xp.ndarray, xp.ndarray, xp.ndarray, xp.ndarray | None]:
    """(dq, dk, dv, dbias) from dy (B, H, T, D), each of the shape of its array; dbias is None if there was no bias.

    See `tiled_attention` for the derivation.
    """
    check_shape("dy", dy, cache.y.shape)
    dtype = xp.result_type(cache.y, dy)
    dq, dk, dv = xp.zeros(cache.q.shape, dtype), xp.empty(cache.k.shape, dtype), xp.empty(cache.v.shape, dtype)
    dbias = None if cache.bias is None else xp.zeros(cache.bias.shape, dtype)
    for part in _parts(cache):
        _backward(part, dy, dq, dk, dv, dbias)
    return dq, dk, dv, dbias


class _Part:
    """Some heads of some sequences: few enough for one tile of their scores to stay in the processor's cache.

    b sequences, g key heads and h = g H / G heads. The queries of the heads that share a key head stand one below the
    other, (b, g, n, D) for n = t H / G. So the products need no repeated keys, and dk and dv, the sums over the heads
    of a group, are products too.
    """

    def __init__(self, cache: TiledAttentionCache, number: int, batch: slice, groups: slice) -> None:
        per_group = cache.q.shape[1] // cache.k.shape[1]
        self.cache, self.number, self.batch, self.groups = cache, number, batch, groups
        self.heads = slice(groups.start * per_group, groups.stop * per_group)

    def group(self, x: xp.ndarray) -> xp.ndarray:
        """x (b, h, t, X) -> (b, g, n, X)."""
        return x.reshape(len(x), self.groups.stop - self.groups.start, -1, x.shape[-1])

    def by_head(self, x: xp.ndarray) -> xp.ndarray:
        """x (b, g, n, X) -> (b, h, t, X): the inverse of `group`, a view."""
        return x.reshape(len(x), self.heads.stop - self.heads.start, -1, x.shape[-1])

    def complete(self, scores: xp.ndarray, rows: slice, columns: slice, entries: bool | np.ndarray) -> None:
        """Add the bias to a tile of scores (b, g, n, s), and set the scores that are not allowed to -inf, in place."""
        scores, cache = self.by_head(scores), self.cache
        if cache.bias is not None:
            scores += cache.bias[self.heads, rows, columns]
        if entries is not True:
            xp.copyto(scores, -xp.inf, where=to_device(~entries))
        if cache.allowed is not None:
            xp.copyto(scores, -xp.inf, where=~_cut(cache.allowed, (self.batch, self.heads, rows, columns)))

    def dropout(self, weights: xp.ndarray, rows: slice, columns: slice) -> tuple[xp.ndarray, DropoutCache | None]:
        """Dropout on a tile of weights: every tile has a generator of its own, so that backward draws the same mask."""
        if self.cache.seed is None:
            return weights, None
        rng = make_generator([self.cache.seed, self.number, rows.start, columns.start])
        return dropout(weights, self.cache.dropout_rate, rng)


def _parts(cache: TiledAttentionCache) -> Iterator[_Part]:
    """Cut batch and heads into parts."""
    (B, H, T, _), (G, S) = cache.q.shape, cache.k.shape[1:3]
    pairs = max(1, NUMBERS // (min(T, cache.tile) * min(S, cache.tile) * (H // G)))  # of a sequence and a key head
    for batch in _slices(B, max(1, pairs // G)):
        for groups in _slices(G, min(G, pairs)):
            yield _Part(cache, batch.start * G + groups.start, batch, groups)


def _forward(part):
    """Write y and the log-sum-exp of one part."""
    cache = part.cache
    keys = part.batch, part.groups
    # copies, because the views that `split_heads` returns are slow in products
    q, k, v = (xp.ascontiguousarray(x) for x in (cache.q[part.batch, part.heads], cache.k[keys], cache.v[keys]))
    q = q * cache.scale
    for rows in _slices(q.shape[2], cache.tile):
        y, log_sum_exp = _forward_rows(part, part.group(q[:, :, rows]), k, v, rows)
        cache.y[part.batch, part.heads, rows] = part.by_head(y)
        cache.log_sum_exp[part.batch, part.heads, rows] = part.by_head(log_sum_exp)


def _forward_rows(part, q, k, v, rows):
    """The queries `rows`, q (b, g, n, D) times the scale, k and v (b, g, S, D) -> y (b, g, n, D) and L (b, g, n, 1)."""
    cache, dtype = part.cache, part.cache.y.dtype
    largest = xp.full((*q.shape[:3], 1), -xp.inf, dtype)  # m
    shift, total = xp.zeros_like(largest), xp.zeros_like(largest)  # m where it is finite, and l
    sums = xp.zeros((*q.shape[:3], v.shape[-1]), dtype)  # a
    for columns in _slices(k.shape[2], cache.tile):
        entries = cache.pattern.tile(rows, columns)
        if entries is False:
            continue
        weights = q @ k[:, :, columns].swapaxes(-1, -2)  # (b, g, n, s), scores until exp
        part.complete(weights, rows, columns, entries)
        before, largest = largest, xp.maximum(largest, row_max(weights))
        # a query that may attend to nothing so far: -inf - 0 is -inf, where -inf - -inf would be NaN
        shift = xp.where(xp.isfinite(largest), largest, 0)
        weights -= shift
        xp.exp(weights, out=weights)
        rescale = xp.exp(before - shift)  # 0 in the first tile
        total *= rescale
        total += row_sum(weights)
        dropped, _ = part.dropout(weights, rows, columns)  # after the sum: dropout does not normalise again
        sums *= rescale
        sums += dropped @ v[:, :, columns]
    total[total == 0] = 1  # a query that may attend to nothing: y = 0 / 1
    sums /= total
    return sums, shift + xp.log(total)


def _backward(part, dy, dq, dk, dv, dbias):
    """Add to dbias, and write dq, dk and dv, for one part.

    [dy, -D] times [v, 1] is dp - D: the product subtracts what would otherwise be subtracted from every tile in a pass
    of its own. L is subtracted after the product, so that the scores are those of forward to the last bit: where they
    are large, another rounding would make other weights of them.
    """
    cache = part.cache
    queries, keys = (part.batch, part.heads), (part.batch, part.groups)
    q = xp.ascontiguousarray(cache.q[queries]) * cache.scale  # (b, h, T, D)
    dy_D = _beside(dy[queries], -row_dot(dy[queries], cache.y[queries]))  # (b, h, T, D + 1)
    k_part, v_part = xp.ascontiguousarray(cache.k[keys]), _beside(cache.v[keys], 1.0)  # (b, g, S, D) and D + 1
    for columns in _slices(k_part.shape[2], cache.tile):
        k, v = k_part[:, :, columns], v_part[:, :, columns]
        dk_tile, dv_tile = xp.zeros(k.shape, dq.dtype), xp.zeros((*v.shape[:3], v.shape[3] - 1), dq.dtype)
        for rows in _slices(q.shape[2], cache.tile):
            entries = cache.pattern.tile(rows, columns)
            if entries is False:
                continue
            q_rows, dy_rows = part.group(q[:, :, rows]), part.group(dy_D[:, :, rows])  # (b, g, n, D) and D + 1
            weights = q_rows @ k.swapaxes(-1, -2)  # (b, g, n, s), scores until exp
            part.complete(weights, rows, columns, entries)
            weights -= part.group(cache.log_sum_exp[(*queries, rows)])
            xp.exp(weights, out=weights)
            dropped, keep = part.dropout(weights, rows, columns)
            dv_tile += dropped.swapaxes(-1, -2) @ dy_rows[..., :-1]
            if keep is None:
                dscores = dy_rows @ v.swapaxes(-1, -2)
            else:
                dscores = dropout_backward(dy_rows[..., :-1] @ v[..., :-1].swapaxes(-1, -2), keep)
                dscores += dy_rows[..., -1:]
            dscores *= weights
            dq[(*queries, rows)] += part.by_head(dscores @ k)
            dk_tile += dscores.swapaxes(-1, -2) @ q_rows
            if dbias is not None:
                dbias[part.heads, rows, columns] += part.by_head(dscores).sum(axis=0)
        dk[(*keys, columns)], dv[(*keys, columns)] = dk_tile, dv_tile
    dq[queries] *= cache.scale


def _beside(x, last):
    """x (..., D) with one more feature, `last` -> (..., D + 1)."""
    extended = xp.empty((*x.shape[:-1], x.shape[-1] + 1), x.dtype)
    extended[..., :-1], extended[..., -1:] = x, last
    return extended


def _slices(length, size):
    """Cut 0 ... length - 1 into slices of `size`."""
    return [slice(start, min(start + size, length)) for start in range(0, length, size)]


def _cut(x, slices):
    """x, which can be broadcast to (B, H, T, S), cut along those of its last axes that are not of length 1."""
    own = slices[len(slices) - x.ndim :]
    return x[tuple(slice(None) if length == 1 else part for length, part in zip(x.shape, own, strict=True))]

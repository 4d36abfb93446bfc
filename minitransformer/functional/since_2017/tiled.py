"""Attention in tiles (Dao et al. 2022, "FlashAttention"; Dao 2023): the weights (T, S) never exist as a whole.

Full attention keeps T S weights per head for its backward pass. Here a tile of queries meets one tile of keys after the
other, and the softmax is computed while they pass by. The memory is that of q, k, v and y, and on a CPU it is also
faster, because a tile stays in the processor's cache, and tiles in which nothing is allowed are never visited.

A tile of scores has a row for each key and a column for each query. So the maximum and the sum over the keys, and what
is subtracted from the scores of a query, run over whole rows, several numbers at a time.
"""

import math
from functools import partial

import numpy as np

from minitransformer.backend import backend_name, xp
from minitransformer.checks import check_attention, check_generator, check_integer, check_mask, check_rate, check_shape
from minitransformer.functional.dropout import dropout_backward
from minitransformer.functional.reductions import row_dot
from minitransformer.functional.since_2017.patterns import EVERYTHING, TilePattern
from minitransformer.functional.since_2017.tiles import TiledAttentionCache, parts, slices
from minitransformer.functional.softmax import drop_negligible
from minitransformer.system.process import SINGLE_THREAD, team_of_blas

TILE = (128, 512)  # queries and keys, for the cache of a processor
GPU_TILE = (2048, 1024)  # for few launches: on an H100, 4,096 tokens take 11 ms, and with TILE 1,750 ms


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
    tile: tuple[int, int] | None = None,
) -> tuple[xp.ndarray, TiledAttentionCache]:
    """The function of `scaled_dot_product_attention`, computed in tiles of `tile` (queries, keys).

    q (B, H, T, D), k and v (B, G, S, D) for G key heads, of which each serves H / G neighboring heads of q; the other
    arguments as there. `pattern` says which tiles are visited; a pair must be allowed by `pattern` and by `allowed`.
    `tile` is by default TILE, or GPU_TILE on a GPU. Which weights dropout sets to 0 depends on it. Raises
    TypeError or ValueError for arguments that do not fit.

    `bias` is (H, T, S), or (H, 1, T + S - 1) if it depends on the distance s - t alone: one number for each distance,
    from 1 - T to S - 1. The bias of a tile is made of these when the tile is visited, so this form needs no memory for
    T S numbers.

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
    if tile is None:
        tile = TILE if backend_name() == "numpy" else GPU_TILE
    for size in tile:
        check_integer("tile", size, least=1)
    check_mask(allowed, (B, H, T, S))
    if bias is not None and tuple(bias.shape) != (H, 1, T + S - 1):
        check_shape("bias", bias, (H, T, S))
    scale = 1.0 / math.sqrt(D) if scale is None else scale
    # a number for this call; with it, backward draws the same dropout masks again. On a GPU, int() waits for the number
    seed = int(rng.integers(0, 2**63 - 1)) if rng is not None and dropout_rate else None
    dtype = xp.result_type(*(x for x in (q, k, v, bias) if x is not None))
    y, log_sum_exp = xp.empty((B, H, T, v.shape[-1]), dtype), xp.empty((B, H, T), dtype)
    cache = TiledAttentionCache(q, k, v, y, log_sum_exp, allowed, bias, scale, dropout_rate, seed, pattern, tile)
    team_of_blas().map(_forward, parts(cache))  # each part writes what no other does
    return y, cache


def tiled_attention_backward(
    dy: xp.ndarray, cache: TiledAttentionCache
) -> tuple[xp.ndarray, xp.ndarray, xp.ndarray, xp.ndarray | None]:
    """(dq, dk, dv, dbias) from dy (B, H, T, D), each of the shape of its array; dbias is None if there was no bias.

    See `tiled_attention` for the derivation.
    """
    check_shape("dy", dy, cache.y.shape)
    dtype = xp.result_type(cache.y, dy)
    dq, dk, dv = xp.empty(cache.q.shape, dtype), xp.zeros(cache.k.shape, dtype), xp.zeros(cache.v.shape, dtype)
    dbias = None if cache.bias is None else xp.zeros(cache.bias.shape, dtype)
    team = team_of_blas() if dbias is None else SINGLE_THREAD  # the parts add to one dbias
    team.map(partial(_backward, dy=dy, dq=dq, dk=dk, dv=dv, dbias=dbias), parts(cache))
    return dq, dk, dv, dbias


def _forward(part):
    """Write y and the log-sum-exp of one part."""
    cache = part.cache
    keys = part.batch, part.groups
    # copies, because the views that `split_heads` returns are slow in products
    q, k, v = (xp.ascontiguousarray(x) for x in (cache.q[part.batch, part.heads], cache.k[keys], cache.v[keys]))
    q = q * cache.scale
    for rows in slices(q.shape[2], cache.tile[0]):
        y, log_sum_exp = _forward_rows(part, part.group(q[:, :, rows]), k, v, rows)
        cache.y[part.batch, part.heads, rows] = part.by_head(y)
        cache.log_sum_exp[part.batch, part.heads, rows] = log_sum_exp.reshape(len(y), -1, rows.stop - rows.start)


def _forward_rows(part, q, k, v, rows):
    """The queries `rows`, q (b, g, n, D) times the scale, k and v (b, g, S, D) -> y (b, g, n, D) and L (b, g, 1, n)."""
    dtype, (b, g, n, _) = part.cache.y.dtype, q.shape
    largest = xp.full((b, g, 1, n), -xp.inf, dtype)  # m
    shift, total = xp.zeros_like(largest), xp.zeros_like(largest)  # m where it is finite, and l
    sums = xp.zeros((b, g, n, v.shape[-1]), dtype)  # a
    for columns, forbidden in part.tiles(rows):
        weights = k[:, :, columns] @ q.swapaxes(-1, -2)  # (b, g, s, n), scores until exp
        part.complete(weights, rows, columns, forbidden)
        before, largest = largest, xp.maximum(largest, weights.max(axis=-2, keepdims=True))
        # a query that may attend to nothing so far: -inf - 0 is -inf, where -inf - -inf would be NaN
        shift = xp.where(xp.isfinite(largest), largest, 0)
        weights -= shift
        drop_negligible(weights)
        xp.exp(weights, out=weights)
        rescale = xp.exp(before - shift)  # 0 in the first tile
        total *= rescale
        total += xp.ones((1, weights.shape[-2]), dtype) @ weights  # their sum; as a product it is faster
        dropped, _ = part.dropout(weights, rows, columns)  # after the sum: dropout does not normalize again
        sums *= rescale.swapaxes(-1, -2)
        sums += dropped.swapaxes(-1, -2) @ v[:, :, columns]
    total[total == 0] = 1  # a query that may attend to nothing: y = 0 / 1
    sums /= total.swapaxes(-1, -2)
    return sums, shift + xp.log(total)


def _backward(part, dy, dq, dk, dv, dbias):
    """Write dq, and add to dk, dv and dbias, for one part.

    [v, 1] times [dy, -D] is dp - D: the product subtracts what would otherwise be subtracted from every tile in a pass
    of its own. L is subtracted after the product, so that the scores are those of forward to the last bit: where they
    are large, another rounding would make other weights of them.
    """
    cache = part.cache
    queries, keys = (part.batch, part.heads), (part.batch, part.groups)
    q = xp.ascontiguousarray(cache.q[queries]) * cache.scale  # (b, h, T, D)
    dy_D = _beside(dy[queries], -row_dot(dy[queries], cache.y[queries]))  # (b, h, T, D + 1)
    k_part, v_part = xp.ascontiguousarray(cache.k[keys]), _beside(cache.v[keys], 1.0)  # (b, g, S, D) and D + 1
    dk_part, dv_part = dk[keys], dv[keys]
    for rows in slices(q.shape[2], cache.tile[0]):
        q_rows, dy_rows = part.group(q[:, :, rows]), part.group(dy_D[:, :, rows])  # (b, g, n, D) and D + 1
        dq_rows = xp.zeros(q_rows.shape, dq.dtype)
        for columns, forbidden in part.tiles(rows):
            k, v = k_part[:, :, columns], v_part[:, :, columns]
            weights = k @ q_rows.swapaxes(-1, -2)  # (b, g, s, n), scores until exp
            part.complete(weights, rows, columns, forbidden)
            weights -= part.flat(cache.log_sum_exp[(*queries, rows)])
            drop_negligible(weights)
            xp.exp(weights, out=weights)
            dropped, keep = part.dropout(weights, rows, columns)
            dv_part[:, :, columns] += dropped @ dy_rows[..., :-1]
            if keep is None:
                dscores = v @ dy_rows.swapaxes(-1, -2)
            else:
                dscores = dropout_backward(v[..., :-1] @ dy_rows[..., :-1].swapaxes(-1, -2), keep)
                dscores += dy_rows[..., -1:].swapaxes(-1, -2)
            dscores *= weights
            dq_rows += dscores.swapaxes(-1, -2) @ k
            dk_part[:, :, columns] += dscores @ q_rows
            if dbias is not None:
                part.add_bias_gradient(dbias, dscores, rows, columns)
        dq_rows *= cache.scale
        dq[(*queries, rows)] = part.by_head(dq_rows)


def _beside(x, last):
    """x (..., D) with one more feature, `last` -> (..., D + 1)."""
    extended = xp.empty((*x.shape[:-1], x.shape[-1] + 1), x.dtype)
    extended[..., :-1], extended[..., -1:] = x, last
    return extended

"""Looking up the vector of each token, and adding up the gradients of tokens that come more than once."""

from typing import NamedTuple

import numpy as np

from minitransformer.backend import fused, to_device, xp
from minitransformer.checks import check_ids, check_shape


class EmbeddingCache(NamedTuple):
    """What `embedding` remembers."""

    ids: np.ndarray  # (B, T), on the host
    scale: float


def embedding(ids: np.ndarray, E: xp.ndarray, scale: float = 1.0) -> tuple[xp.ndarray, EmbeddingCache]:
    """Row ids[b, t] of E, times `scale` (paper section 3.4: sqrt(d_model)).

    ids (B, T) integers in 0 ... V - 1 on the host, E (V, C) -> y (B, T, C). This is the product of a one-hot matrix
    with E, without the multiplications by zero. Raises TypeError for ids that are not integers, ValueError for no ids,
    IndexError for an id outside the table.

    Forward    y_btc = scale E[ids_bt, c]
    Jacobian   dy_btc/dE_vc = scale 1[ids_bt = v]
    Chain      dE_vc = scale sum over all (b, t) with ids_bt = v of dy_btc        a token that occurs twice gets both
    Remember   the ids, on the host, where they can be sorted without waiting for a GPU
    Check      the sum of dE over the vocabulary is scale times the sum of dy over all tokens
    """
    check_ids("ids", ids, len(E))
    y = E[to_device(ids)]
    y *= scale
    return y, EmbeddingCache(ids, scale)


def embedding_backward(dy: xp.ndarray, cache: EmbeddingCache, dE: xp.ndarray) -> None:
    """Add the gradient of the table to `dE` (V, C), in place, from dy (B, T, C); see `embedding` for the derivation.

    It adds in place, unlike the other backward functions, because it touches only the rows of the tokens that occur.
    Raises ValueError for a dy or dE of the wrong shape, IndexError if dE has fewer rows than the table had.
    """
    ids, scale = cache
    check_shape("dy", dy, (*ids.shape, dE.shape[-1]))
    scatter_add(dE, ids.reshape(-1), dy.reshape(-1, dy.shape[-1]) * scale)


def scatter_add(table: xp.ndarray, ids: np.ndarray, rows: xp.ndarray) -> None:
    """table[ids[n]] += rows[n] for all n, where the same id may occur several times.

    table (V, C), ids (N,) integers on the host, rows (N, C); `table` is changed in place. The result is that of
    `np.add.at(table, ids, rows)`, which is slow on the host; on a GPU it adds in an order that changes from run to run.
    Here the order is fixed, so the bits are the same each time. Raises ValueError for wrong shapes, TypeError for ids
    that are not integers, IndexError for an id outside the table.

    The rows are sorted by id, which puts rows of one id next to each other: they form a run. In the first round each
    row at an even place of its run adds the row after it; in the second round each row at a place divisible by 4 adds
    the row two places after it, and so on. After log2(longest run) rounds the first row of each run is the sum of the
    run. Only the ids are sorted, and they are on the host, so nothing waits for a GPU.
    """
    if table.ndim != 2:
        raise ValueError(f"table must be of shape (V, C), got {tuple(table.shape)}")
    check_shape("rows", rows, (len(ids), table.shape[1]))
    check_shape("ids", ids, (len(ids),))
    if len(ids) > 0:
        check_ids("ids", ids, len(table))
    _scatter_add(table, ids, rows)


@fused
def _scatter_add(table, ids, rows):
    order = np.argsort(ids, kind="stable")
    sorted_ids = ids[order]
    firsts = np.flatnonzero(np.diff(sorted_ids, prepend=-1))  # where each run starts
    lengths = np.diff(firsts, append=len(ids))
    place = np.arange(len(ids)) - np.repeat(firsts, lengths)  # in its run
    left = np.repeat(lengths, lengths) - place  # rows from here to the end of the run
    sums = rows[to_device(order)]
    step = 1
    while step < lengths.max(initial=0):
        takes = to_device(np.flatnonzero((place & (2 * step - 1) == 0) & (left > step)))
        sums[takes] += sums[takes + step]
        step *= 2
    table[to_device(sorted_ids[firsts])] += sums[to_device(firsts)]

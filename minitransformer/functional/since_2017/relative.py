"""Relative positions as in T5 (Raffel et al. 2020): a learnt number for each distance, added to the scores."""

import numpy as np

from minitransformer.backend import to_device, xp
from minitransformer.checks import check_shape
from minitransformer.functional.scatter import scatter_add
from minitransformer.functional.since_2017.diagonals import diagonal_sums


def relative_bias(table: xp.ndarray, buckets: np.ndarray) -> tuple[xp.ndarray, np.ndarray]:
    """Look up the number of each pair's bucket, for each head.

    table (N, H) for N buckets, buckets (T, S) integers on the host, from `relative_buckets` -> y (H, T, S). It is an
    embedding whose tokens are distances (see `embedding`).

    Forward    y_hts = E[bucket_ts, h]
    Jacobian   dy_hts/dE_nk = 1[bucket_ts = n] 1[h = k]
    Chain      dE_nh = sum over all (t, s) with bucket_ts = n of dy_hts        every pair at that distance adds to it
    Remember   the buckets, on the host, where they can be sorted without waiting for a GPU
    Check      the sum of dE over the buckets is the sum of dy over all pairs
    """
    return xp.take(table.T, to_device(buckets), axis=1), buckets


def relative_bias_backward(dy: xp.ndarray, buckets: np.ndarray, dtable: xp.ndarray) -> None:
    """Add the gradient of the table to `dtable` (N, H), in place, from dy (H, T, S); see `relative_bias`.

    All pairs at one distance s - t are in one bucket, so each diagonal of dy is summed first. That leaves T + S - 1
    rows to add instead of T S: 7 times as fast with T = S = 512.

    Raises ValueError for a dy or dtable of the wrong shape.
    """
    check_shape("dy", dy, (dtable.shape[-1], *buckets.shape))
    _, T, S = dy.shape
    up_the_first_column_along_the_first_row = [*range((T - 1) * S, 0, -S), *range(S)]
    scatter_add(dtable, buckets.reshape(-1)[up_the_first_column_along_the_first_row], diagonal_sums(dy).T)

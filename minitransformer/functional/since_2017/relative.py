"""Relative positions as in T5 (Raffel et al. 2020): a learned number for each distance, added to the scores."""

import numpy as np

from minitransformer.backend import to_device, xp
from minitransformer.checks import check_shape
from minitransformer.functional.embedding import scatter_add
from minitransformer.functional.since_2017.diagonals import diagonal_sums


def relative_buckets(
    T: int, S: int, num_buckets: int = 32, max_distance: int = 128, bidirectional: bool = True, start: int = 0
) -> np.ndarray:
    """The bucket of the distance from each query to each key -> integers (T, S) on the host (Raffel et al. 2020).

    Queries are at positions start ... start + T - 1, keys at 0 ... S - 1. If bidirectional, the first half of the
    buckets is for keys at or before the query and the second half for keys after it. Otherwise all buckets are for the
    past; keys after the query, which a causal mask hides, share bucket 0 with the query's own position.

    Of the n buckets of one direction, the first e = n // 2 hold one distance d each, and the others more and more:

        bucket(d) = d                                                            for d < e
        bucket(d) = e + floor((n - e) log(d / e) / log(max_distance / e))        from there on, and n - 1 at most

    No key after the query has distance 0, so bucket n, the first of the second half, stays empty, as in T5. Raises
    ValueError for fewer than two buckets per direction, or so many that there are no far distances left to share them.
    """
    if bidirectional and num_buckets % 2:
        raise ValueError(f"buckets for two directions must be even, got {num_buckets}")
    n = num_buckets // 2 if bidirectional else num_buckets
    if n < 2 or max_distance <= n // 2:
        raise ValueError(
            f"each direction needs 2 buckets and more distances than half its buckets, "
            f"got num_buckets = {num_buckets} and max_distance = {max_distance}"
        )
    offsets = np.arange(S) - np.arange(start, start + T)[:, None]  # (T, S), key minus query: negative for the past
    distances = np.abs(offsets) if bidirectional else np.maximum(-offsets, 0)
    buckets = np.searchsorted(_least_distances(n, max_distance), distances, side="right") - 1
    if bidirectional:
        buckets += n * (offsets > 0)
    return buckets


def _least_distances(n: int, max_distance: int) -> list[int]:
    """The least distance in each of n buckets.

    Computed in whole numbers, because the logarithm may be rounded to either side of one: d is in bucket e + k or a
    later one exactly where (d / e)^(n - e) >= (max_distance / e)^k.
    """
    e = n // 2
    least = list(range(e + 1))
    for k in range(1, n - e):
        d = least[-1]
        while d ** (n - e) < e ** (n - e - k) * max_distance**k:
            d += 1
        least.append(d)
    return least


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

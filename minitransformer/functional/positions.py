"""Tables that depend only on positions, computed on the host: sinusoids, angles of rotation, buckets of distances."""

import math

import numpy as np
from numpy.typing import DTypeLike

from minitransformer.backend import to_device, xp
from minitransformer.checks import check_positions


def sinusoidal_positions(length: int, d_model: int, dtype: DTypeLike = np.float32) -> np.ndarray:
    """A vector for each position, from sines and cosines of geometrically growing wavelengths -> (length, d_model).

    PE[t, 2i] = sin(t / 10000^(2i / d_model))        PE[t, 2i + 1] = cos(t / 10000^(2i / d_model))

    The features 2i and 2i + 1 share one frequency, so PE[t + k] is PE[t] with each such pair turned by a fixed angle,
    and PE[t] . PE[t + k] does not depend on t. Computed in float64 on the host and then cast. Raises ValueError for an
    odd d_model.
    """
    if d_model % 2:
        raise ValueError(f"sinusoidal positions need an even d_model, got {d_model}")
    pair = np.arange(0, d_model, 2, dtype=np.float64)  # the 2i of the formula
    angles = np.outer(np.arange(length), np.exp(-math.log(10000.0) * pair / d_model))  # (length, d_model / 2)
    table = np.empty((length, d_model), dtype=dtype)
    table[:, 0::2] = np.sin(angles)
    table[:, 1::2] = np.cos(angles)
    return table


def rotary_tables(
    length: int,
    width: int,
    base: float = 10000.0,
    dtype: DTypeLike = np.float32,
    factor: float = 1.0,
    original_len: int | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """The cosines and sines by which `rotate` turns each pair of features at each position -> two (length, width / 2).

    cos(a[t, i]) and sin(a[t, i])        a[t, i] = t base^(-2i / width)        (Su et al. 2021, equation 15)

    With the base 10000 these are the entries of `sinusoidal_positions`: there they are added, here they multiply.
    Computed in float64 and then cast. A `factor` other than 1 stretches a model that has been trained on short texts:

        original_len = None: all angles are divided by it, as if tokens were closer together (Chen et al. 2023)
        original_len = L:    Llama 3.1. Pairs that turn more than 4 times in L tokens, which tell neighbours apart, keep
                             their angles; of those that turn less than once, angles are divided; of the others with n
                             turns in L tokens, the share (n - 1) / (4 - 1) is kept, and the rest divided

    Raises ValueError for an odd width.
    """
    if width % 2:
        raise ValueError(f"rotary positions turn pairs of features, so the width of a head must be even, got {width}")
    pair = np.arange(0, width, 2, dtype=np.float64)  # the 2i of the formula
    speeds = np.exp(-math.log(base) * pair / width)  # (width / 2,), the angle from one token to the next
    kept = 0.0 if original_len is None else np.clip((original_len * speeds / (2 * math.pi) - 1) / (4 - 1), 0.0, 1.0)
    angles = np.outer(np.arange(length), kept * speeds + (1 - kept) * speeds / factor)  # (length, width / 2)
    return np.cos(angles).astype(dtype), np.sin(angles).astype(dtype)


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


def rows_from(table: xp.ndarray, start: int | np.ndarray, T: int) -> xp.ndarray:
    """T rows of `table` (max_len, C) from `start` on -> (T, C), or (B, T, C) for an array of starts (B,) on the host.

    A start in such an array may be negative: positions before 0 are padding in front of a sequence, and get row 0.
    Raises ValueError if a row is outside the table.
    """
    if not isinstance(start, np.ndarray):
        check_positions(start, T, len(table))
        return table[start : start + T]
    check_positions(0, int(start.max()) + T, len(table))
    return table[to_device(np.maximum(start[:, None] + np.arange(T), 0))]

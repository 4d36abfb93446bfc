"""The table of sinusoids, computed on the host, and its rows for some positions."""

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

"""How far two rankings agree."""

from typing import Any

import numpy as np


def ranks(values: Any) -> np.ndarray:
    """The rank of each of `values` (n,), from 1 for the smallest; equal values share the mean of their ranks."""
    _, inverse, counts = np.unique(np.asarray(values), return_inverse=True, return_counts=True)
    return (counts.cumsum() - (counts - 1) / 2)[inverse.reshape(-1)]


def spearman(a: Any, b: Any) -> float:
    """Spearman's rank correlation of two lists, from -1 to 1; NaN if one of them has only equal values."""
    one, other = (ranks(values) - (len(values) + 1) / 2 for values in (a, b))
    size = (one @ one * (other @ other)) ** 0.5
    return float(one @ other / size) if size else float("nan")

"""The project's one measure of how far an array is from the right one."""

from typing import Any

import numpy as np

from minitransformer.backend import to_host


def relative_error(got: Any, expected: Any) -> float:
    """The largest difference, relative to the largest entry of `expected`: one number for a whole tensor.

    If `expected` is all 0, the largest difference itself. Takes arrays on either device, and numbers. 0 for empty
    arrays, NaN if there is a NaN in either. Raises ValueError if the shapes differ.
    """
    got, expected = to_host(got), to_host(expected)
    if got.shape != expected.shape:
        raise ValueError(f"shapes differ: {got.shape} and {expected.shape}")
    difference = np.abs(got - expected).max(initial=0.0)
    return float(difference / (np.abs(expected).max(initial=0.0) or 1.0))

"""Dropout on a GPU: given the random bits, one kernel for the mask and the product with it."""

from typing import Any

from minitransformer.backend import xp
from minitransformer.kernels.launch import common_real, launch_entries


def dropout(x: xp.ndarray, bits: xp.ndarray, dropped: int, scale: float) -> Any:
    """As the formula of `functional.dropout`: x and bits (uint16) of one shape -> y, keep."""
    dtype = common_real(x)
    if dtype is None:
        return NotImplemented
    x = xp.ascontiguousarray(x)
    y, keep = xp.empty_like(x), xp.empty(x.shape, bool)
    launch_entries("dropout", dtype, x.size, x, bits, y, keep, x.size, dropped, dtype.type(scale))
    return y, keep


def dropout_backward(dy: xp.ndarray, keep: xp.ndarray, scale: float) -> Any:
    """As the formula of `functional.dropout_backward`: dx."""
    dtype = common_real(dy)
    if dtype is None or dy.shape != keep.shape:
        return NotImplemented
    dy, keep = xp.ascontiguousarray(dy), xp.ascontiguousarray(keep)
    dx = xp.empty_like(dy)
    launch_entries("dropout_backward", dtype, dy.size, dy, keep, dx, dy.size, dtype.type(scale))
    return dx

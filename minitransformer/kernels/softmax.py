"""Softmax over the last axis, with a mask, on a GPU: one kernel forward, one backward."""

from typing import Any

from minitransformer.backend import xp
from minitransformer.kernels.launch import NULL, common_real, launch_rows


def softmax(scores: xp.ndarray, allowed: xp.ndarray | None, overwrite: bool) -> Any:
    """As the formula of `functional.softmax`: p."""
    dtype = common_real(scores)
    if dtype is None or (overwrite and not scores.flags.c_contiguous):
        return NotImplemented
    S = scores.shape[-1]
    rows = scores.size // S
    H, T = (1, 1, 1, *scores.shape)[-3:-1]
    mask, strides = _mask_and_strides(scores, allowed)
    s = xp.ascontiguousarray(scores)
    p = scores if overwrite else xp.empty_like(s)
    launch_rows("softmax", dtype, rows, S, s, mask, p, rows, S, H, T, *strides)
    return p


def softmax_backward(dp: xp.ndarray, p: xp.ndarray) -> Any:
    """As `functional.softmax_backward`: ds."""
    dtype = common_real(dp, p)
    if dtype is None or dp.shape != p.shape:
        return NotImplemented
    dp, p = xp.ascontiguousarray(dp), xp.ascontiguousarray(p)
    ds = xp.empty_like(p)
    S = p.shape[-1]
    rows = p.size // max(S, 1)
    launch_rows("softmax_backward", dtype, rows, S, dp, p, ds, rows, S)
    return ds


def _mask_and_strides(scores: xp.ndarray, allowed: xp.ndarray | None) -> tuple[Any, tuple[int, ...]]:
    """The mask, and how far apart its entries are along B, H, T and S: 0 along an axis where it is broadcast."""
    if allowed is None:
        return NULL, (0, 0, 0, 0)
    mask = xp.broadcast_to(allowed, scores.shape)
    if mask.ndim > 4:
        mask = mask.reshape(-1, *mask.shape[-3:])  # a copy, unless the leading axes can be merged
    return mask, (0,) * (4 - mask.ndim) + mask.strides  # in bytes; a boolean takes one

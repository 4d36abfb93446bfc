"""Softmax over the last axis, with a mask, on a GPU: one kernel forward, one backward."""

from minitransformer.backend import xp
from minitransformer.checks import check_mask
from minitransformer.kernels.launch import NULL, common_real, launch_rows


def softmax(scores, allowed=None, overwrite=False):
    """As `functional.softmax`."""
    check_mask(allowed, scores.shape)
    dtype = common_real(scores)
    if dtype is None or (overwrite and not scores.flags.c_contiguous):
        return NotImplemented
    S = scores.shape[-1]
    rows = scores.size // max(S, 1)
    H, T = (1, 1, 1, *scores.shape)[-3:-1]
    mask, strides = _mask_and_strides(scores, allowed)
    s = xp.ascontiguousarray(scores)
    p = scores if overwrite else xp.empty_like(s)
    launch_rows("softmax", dtype, rows, S, s, mask, p, rows, S, H, T, *strides)
    return p, p


def softmax_backward(dp, p):
    """As `functional.softmax_backward`."""
    dtype = common_real(dp, p)
    if dtype is None or dp.shape != p.shape:
        return NotImplemented
    dp, p = xp.ascontiguousarray(dp), xp.ascontiguousarray(p)
    ds = xp.empty_like(p)
    S = p.shape[-1]
    rows = p.size // max(S, 1)
    launch_rows("softmax_backward", dtype, rows, S, dp, p, ds, rows, S)
    return ds


def _mask_and_strides(scores, allowed):
    """The mask, and how far apart its entries are along B, H, T and S: 0 along an axis where it is broadcast."""
    if allowed is None:
        return NULL, (0, 0, 0, 0)
    mask = xp.broadcast_to(allowed, scores.shape)
    if mask.ndim > 4:
        mask = mask.reshape(-1, *mask.shape[-3:])  # a copy, where the leading axes cannot be taken together
    return mask, (0,) * (4 - mask.ndim) + mask.strides  # in bytes, of which a boolean takes one

"""Softmax, cross-entropy and label smoothing on a GPU: one kernel for all rows forward, one backward."""

from typing import Any

from minitransformer.backend import xp
from minitransformer.kernels.launch import BLOCK, common_real, launch, launch_rows


def cross_entropy(logits: xp.ndarray, targets: xp.ndarray, smoothing: float, pad: int, overwrite: bool) -> Any:
    """As the formula of `functional.cross_entropy`: logits (N, V), targets (N,) -> loss, p (N, V), share (N,)."""
    dtype = common_real(logits)
    if dtype is None or (overwrite and not logits.flags.c_contiguous):
        return NotImplemented
    N, V = logits.shape
    z = xp.ascontiguousarray(logits)
    p = z if overwrite else xp.empty_like(z)
    share = xp.empty(N, dtype)
    losses = xp.zeros(N, dtype)  # no thread writes a loss where a padding target lies outside the vocabulary
    ids = _as_int64(targets)
    launch("share_of_tokens", dtype, (1,), BLOCK, ids, share, N, int(pad))
    launch_rows("cross_entropy", dtype, N, V, z, ids, p, losses, N, V, dtype.type(smoothing))
    return xp.where(share > 0, losses, 0) @ share, p, share  # the loss of padding may be infinite: times 0 it is NaN


def cross_entropy_backward(
    dloss: Any, p: xp.ndarray, targets: xp.ndarray, share: xp.ndarray, smoothing: float, overwrite: bool
) -> Any:
    """As the formula of `functional.cross_entropy_backward`: dlogits (N, V), for a number or a 0-d array dloss."""
    dtype = common_real(p, share)
    if dtype is None or not p.flags.c_contiguous:
        return NotImplemented
    N, V = p.shape
    dz = p if overwrite else xp.empty_like(p)
    weights = (share * dloss).astype(dtype, copy=False)
    ids = _as_int64(targets)
    launch_rows("cross_entropy_backward", dtype, N, V, p, ids, weights, dz, N, V, dtype.type(smoothing))
    return dz


def _as_int64(ids: xp.ndarray) -> xp.ndarray:
    """`ids` as the kernels read them, without a copy if they are int64 and contiguous already."""
    return xp.ascontiguousarray(ids, dtype=xp.int64)

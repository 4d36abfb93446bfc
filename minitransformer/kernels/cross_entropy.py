"""Softmax, cross-entropy and label smoothing on a GPU: one kernel for all rows forward, one backward."""

from minitransformer.backend import xp
from minitransformer.functional.cross_entropy import CrossEntropyCache
from minitransformer.kernels.launch import BLOCK, common_real, launch, launch_rows


def cross_entropy(logits, targets, smoothing=0.0, pad=0, overwrite=False):
    """As `functional.cross_entropy`."""
    dtype = common_real(logits)
    if dtype is None or (overwrite and not logits.flags.c_contiguous):
        return NotImplemented
    V = logits.shape[-1]
    z, targets_n = xp.ascontiguousarray(logits).reshape(-1, V), targets.reshape(-1)  # (N, V), (N,)
    N = len(z)
    p = z if overwrite else xp.empty_like(z)
    share = xp.empty(N, dtype)
    losses = xp.zeros(N, dtype)  # where a target for padding lies outside the vocabulary, no thread writes a loss
    ids = _as_int64(targets_n)
    launch("share_of_tokens", dtype, (1,), BLOCK, ids, share, N, pad)
    launch_rows("cross_entropy", dtype, N, V, z, ids, p, losses, N, V, dtype.type(smoothing))
    return losses @ share, CrossEntropyCache(p, targets_n, share, smoothing, logits.shape, overwrite)


def cross_entropy_backward(dloss, cache):
    """As `functional.cross_entropy_backward`."""
    p, targets, share, smoothing, shape, overwrite = cache
    dtype = common_real(p, share)
    if dtype is None or not p.flags.c_contiguous:
        return NotImplemented
    N, V = p.shape
    dz = p if overwrite else xp.empty_like(p)
    weights = (share * dloss).astype(dtype, copy=False)
    ids = _as_int64(targets)
    launch_rows("cross_entropy_backward", dtype, N, V, p, ids, weights, dz, N, V, dtype.type(smoothing))
    return dz.reshape(shape)


def _as_int64(ids):
    """`ids` as the kernels read them, without a copy where they are so already."""
    return xp.ascontiguousarray(ids, dtype=xp.int64)

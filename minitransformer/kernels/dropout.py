"""Dropout on a GPU: after the random bits, one kernel for the mask and the product with it."""

from minitransformer.backend import xp
from minitransformer.functional.dropout import DropoutCache
from minitransformer.generators import random_uint16
from minitransformer.kernels.launch import common_real, launch_entries


def dropout(x, rate, rng=None):
    """As `functional.dropout`: the same generator in the same state gives the same mask."""
    dropped = min(round(rate * 65536), 65535)
    if rng is None or dropped == 0:
        return x, None
    dtype = common_real(x)
    if dtype is None:
        return NotImplemented
    bits = random_uint16(rng, x.shape)
    x = xp.ascontiguousarray(x)
    y, keep = xp.empty_like(x), xp.empty(x.shape, bool)
    cache = DropoutCache(keep, 65536 / (65536 - dropped))
    launch_entries("dropout", dtype, x.size, x, bits, y, keep, x.size, dropped, dtype.type(cache.scale))
    return y, cache


def dropout_backward(dy, cache):
    """As `functional.dropout_backward`."""
    if cache is None:
        return dy
    dtype = common_real(dy)
    if dtype is None or dy.shape != cache.keep.shape:
        return NotImplemented
    dy, keep = xp.ascontiguousarray(dy), xp.ascontiguousarray(cache.keep)
    dx = xp.empty_like(dy)
    launch_entries("dropout_backward", dtype, dy.size, dy, keep, dx, dy.size, dtype.type(cache.scale))
    return dx

"""Sums, means and maxima along one axis, in the forms that are fast for the short rows of a Transformer.

NumPy's own reductions have a cost per row. A product with a vector of ones, or a maximum over columns, does not. Every
docstring gives the plain form. `blocks` keeps the rows of a formula with several steps in the processor's cache.
"""

import itertools
import math
from collections.abc import Iterator
from typing import Any

from minitransformer.backend import backend_name, xp

BLOCK = 2**17  # numbers that stay in the cache of one processor for some steps
LONG = 1024  # features: for longer rows NumPy's own sum is as fast
NARROW = 24  # features: for longer rows NumPy's own maximum is faster
FEW = 4096  # numbers: in smaller arrays only the number of calls counts
SMALLEST = 1e-37  # a little above the smallest number of float32 that has all its digits
SMALL_EPS = 1e-30  # beside a larger eps, squares that are too small for float32 make no difference


def row_sum(x: xp.ndarray) -> xp.ndarray:
    """x.sum(axis=-1, keepdims=True)        x (..., C) -> (..., 1)

    Rows as long as a vocabulary use NumPy's own sum, which adds pairwise: it is as fast there, and more accurate.
    """
    C = x.shape[-1]
    if C > LONG or x.size <= FEW:
        return x.sum(axis=-1, keepdims=True)
    return (x.reshape(-1, C) @ xp.ones((C, 1), x.dtype)).reshape(*x.shape[:-1], 1)


def row_mean(x: xp.ndarray) -> xp.ndarray:
    """x.mean(axis=-1, keepdims=True)        x (..., C) -> (..., 1)"""
    mean = row_sum(x)
    mean *= 1.0 / x.shape[-1]
    return mean


def row_dot(x: xp.ndarray, y: xp.ndarray) -> xp.ndarray:
    """(x * y).sum(axis=-1, keepdims=True)        x and y (..., C) -> (..., 1)"""
    return xp.einsum("...c,...c->...", x, y)[..., None]


def row_inverse_rms(x: xp.ndarray, eps: float) -> xp.ndarray:
    """1 / xp.sqrt((x * x).mean(axis=-1, keepdims=True) + eps)        x (..., C) -> (..., 1)

    Squares neither overflow, as those of float32 do from 1.8e19 on, nor vanish: each row is first multiplied by a power
    of 2 that makes its largest entry, or the root of eps, about 1. Where nothing would have overflowed or vanished, the
    result is that of the plain form to the last bit.
    """
    largest = xp.maximum(xp.abs(x).max(axis=-1, keepdims=True), max(math.sqrt(eps), SMALLEST))
    scale = xp.exp2(-xp.floor(xp.log2(largest)))
    x = x * scale
    return scale / xp.sqrt(row_dot(x, x) / x.shape[-1] + eps * scale * scale)


def row_max(x: xp.ndarray) -> xp.ndarray:
    """x.max(axis=-1, keepdims=True)        x (..., C) -> (..., 1)

    NumPy needs about as long for a row of 8 as for one of 64. Short rows are laid out as columns, whose maxima it
    computes many at a time.
    """
    if x.shape[-1] > NARROW or x.size <= FEW:
        return x.max(axis=-1, keepdims=True)
    columns = xp.ascontiguousarray(x.reshape(-1, x.shape[-1]).T)
    return columns.max(axis=0).reshape(*x.shape[:-1], 1)


def column_sum(x: xp.ndarray) -> xp.ndarray:
    """x.sum(axis=0)        x (N, C) -> (C,)        with CuPy one launch instead of four"""
    return x.sum(axis=0) if backend_name() == "cupy" else xp.ones(len(x), x.dtype) @ x


def column_dot(x: xp.ndarray, y: xp.ndarray) -> xp.ndarray:
    """(x * y).sum(axis=0)        x and y (N, C) -> (C,)"""
    return xp.einsum("nc,nc->c", x, y)


def blocks(x: xp.ndarray) -> Iterator[Any]:
    """for block in blocks(x): step(x[block])        instead of step(x), where each row is computed by itself

    The indices cut x (..., C) into views of whole rows, of about BLOCK numbers: a formula of several steps finds them
    in the processor's cache from the second step on. On a GPU there is one block.
    """
    if backend_name() != "numpy" or x.ndim < 2 or x.size <= BLOCK:
        return iter([...])
    of_one = [math.prod(x.shape[i + 1 :]) for i in range(x.ndim - 1)]  # numbers in one item of an axis
    axis = next((i for i, size in enumerate(of_one) if size <= BLOCK), x.ndim - 2)
    step = max(1, BLOCK // of_one[axis])
    outer, starts = itertools.product(*map(range, x.shape[:axis])), range(0, x.shape[axis], step)
    return ((*first, slice(start, start + step)) for first in outer for start in starts)

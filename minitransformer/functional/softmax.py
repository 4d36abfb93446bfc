"""Softmax over the last axis, with a mask."""

import math

from minitransformer.backend import backend_name, fused, xp
from minitransformer.checks import check_mask, check_numbers
from minitransformer.functional.reductions import blocks, row_dot, row_max, row_sum

MANY = 2**21  # numbers: fewer are in the cache as they are


def softmax(
    scores: xp.ndarray, allowed: xp.ndarray | None = None, overwrite: bool = False
) -> tuple[xp.ndarray, xp.ndarray]:
    """Turn scores into weights that are positive and sum to 1 (paper section 3.2.1, equation 1).

    scores (..., S); allowed, boolean, broadcastable to scores, True = may attend -> p (..., S). An entry that is not
    allowed has the score minus infinity, so its weight is exactly 0 however large its score. A row in which nothing is
    allowed has all weights 0 and the gradient 0, never NaN. Raises TypeError for a mask that is not boolean, ValueError
    for one of a wrong shape. With `overwrite`, p is written into the array of the scores, for a caller that no longer
    needs them.

    Forward    p_i = exp(s_i) / sum_j exp(s_j)        after subtracting the largest s: p does not change, and exp cannot
                                                      overflow
    Jacobian   dp_i/ds_j = p_i (1[i = j] - p_j)
    Chain      ds_j = sum_i dp_i p_i (1[i = j] - p_j) = p_j (dp_j - sum_i dp_i p_i)
    Remember   only p
    Check      each row of ds sums to 0; ds is 0 where nothing is allowed
    """
    check_numbers("scores", scores)
    check_mask(allowed, scores.shape)
    p = _softmax(scores, allowed, overwrite)
    return p, p


@fused
def _softmax(scores, allowed, overwrite):
    p = scores if overwrite else scores.copy()
    forbidden = None if allowed is None else ~allowed
    if p.size <= MANY:
        _softmax_in_place(p, forbidden)
        return p
    if forbidden is not None:
        forbidden = xp.broadcast_to(forbidden, p.shape)
    for block in blocks(p):
        _softmax_in_place(p[block], None if forbidden is None else forbidden[block])
    return p


def _softmax_in_place(p, forbidden):
    if forbidden is not None:
        xp.copyto(p, -xp.inf, where=forbidden)
    largest = row_max(p)
    empty = None if forbidden is None else _empty_rows(largest, forbidden)
    if empty is not None:
        largest[empty] = 0  # -inf - 0 is -inf, where -inf - -inf would be NaN
    p -= largest
    drop_negligible(p)
    xp.exp(p, out=p)
    total = row_sum(p)
    if empty is not None:
        total[empty] = 1  # 0 / 1
    p /= total


def drop_negligible(s: xp.ndarray) -> None:
    """Make scores s, the largest of which are 0, minus infinity if their weights would be below sqrt(tiny).

    tiny is the smallest normal number, so these are weights below 1e-19 in float32. They are too small to change any
    sum, but products of them are subnormal numbers, with which processors compute many times as slowly: trained models,
    whose weights are often as small as 1e-40, took 1.44 times as long as new ones. A GPU does not mind.
    """
    if backend_name() == "numpy":
        negligible = s.real < math.log(xp.finfo(s.dtype).tiny) / 2
        if negligible.any():  # to ask costs less than a copy
            xp.copyto(s, -xp.inf, where=negligible)


def _empty_rows(largest, forbidden):
    """The rows in which nothing is allowed -> boolean (..., 1), or None if there are certainly none.

    Their largest allowed score is -inf. So is that of a row in which all allowed scores have overflowed to -inf, but it
    must become NaN and not 0.
    """
    lowest = largest == -xp.inf
    if backend_name() == "numpy" and not lowest.any():  # a GPU would have to wait for the answer
        return None
    return lowest & forbidden.all(axis=-1, keepdims=True)


@fused
def softmax_backward(dp: xp.ndarray, p: xp.ndarray) -> xp.ndarray:
    """ds from dp and the remembered weights p, all (..., S); see `softmax` for the derivation."""
    ds = dp - row_dot(dp, p)
    ds *= p
    return ds

"""The affine map y = x W + b, where a Transformer does nearly all of its arithmetic."""

from typing import NamedTuple

from minitransformer.backend import xp
from minitransformer.checks import check_shape
from minitransformer.functional.reductions import column_sum


class LinearCache(NamedTuple):
    """What `linear` remembers."""

    x: xp.ndarray  # (..., I)
    W: xp.ndarray  # (I, O)


def linear(x: xp.ndarray, W: xp.ndarray, b: xp.ndarray | None = None) -> tuple[xp.ndarray, LinearCache]:
    """y = x W + b, applied to the last axis (paper section 3.2.2, the projections; section 3.3, equation 2).

    x (..., I), W (I, O), b (O,) or None -> y (..., O). One index n stands for all leading axes. Raises ValueError for a
    W or b of another shape.

    Forward    y_no = sum_i x_ni W_io + b_o
    Jacobian   dy_no/dx_ni = W_io      dy_no/dW_io = x_ni      dy_no/db_o = 1
    Chain      dx_ni = sum_o dy_no W_io      dW_io = sum_n x_ni dy_no      db_o = sum_n dy_no
               as matrices: dx = dy W^T, dW = x^T dy, db = the column sums of dy
    Remember   x and W
    Check      dx, dW and db have the shapes of x, W and b; doubling dy doubles all three
    """
    if W.shape != (x.shape[-1], W.shape[-1]):  # two calls fewer in the usual case
        check_shape("W", W, (x.shape[-1], W.shape[-1]))
    if b is not None and b.shape != W.shape[-1:]:
        check_shape("b", b, W.shape[-1:])
    rows = x.reshape(-1, x.shape[-1])  # (N, I): one large matrix product, never a batch of small ones
    y = rows @ W  # (N, O)
    if b is not None:
        y += b
    return y.reshape(*x.shape[:-1], W.shape[1]), LinearCache(x, W)


def linear_backward(dy: xp.ndarray, cache: LinearCache) -> tuple[xp.ndarray, xp.ndarray, xp.ndarray]:
    """(dx, dW, db) from dy (..., O); see `linear` for the derivation."""
    x, W = cache
    rows, dy_rows = x.reshape(-1, x.shape[-1]), dy.reshape(-1, dy.shape[-1])  # (N, I), (N, O)
    dx = linear_input_backward(dy, W)
    dW = rows.T @ dy_rows
    db = column_sum(dy_rows)
    return dx, dW, db


def linear_input_backward(dy: xp.ndarray, W: xp.ndarray) -> xp.ndarray:
    """dx = dy W^T (..., I) from dy (..., O): all that is needed of a W (I, O) that is frozen."""
    return (dy.reshape(-1, dy.shape[-1]) @ W.T).reshape(*dy.shape[:-1], len(W))

"""Layer normalization on a GPU: one kernel forward; backward one for the rows, and two for the column sums."""

from typing import Any

from minitransformer.backend import xp
from minitransformer.kernels.launch import COLUMNS, PARTS, ceil_div, common_real, launch, launch_rows

MOST_CHUNKS, FEWEST_ROWS = 64, 32  # of rows, in the first stage of the sums: enough to keep a large GPU busy


def layer_norm(x: xp.ndarray, gamma: xp.ndarray, beta: xp.ndarray, eps: float) -> Any:
    """As the formula of `functional.layer_norm`: x (..., C), gamma and beta (C,) -> y, x_hat, rstd."""
    dtype = common_real(x, gamma, beta)
    if dtype is None:
        return NotImplemented
    C = x.shape[-1]
    rows = x.size // C
    x, gamma, beta = (xp.ascontiguousarray(array) for array in (x, gamma, beta))
    y, x_hat, rstd = xp.empty_like(x), xp.empty_like(x), xp.empty((*x.shape[:-1], 1), dtype)
    launch_rows("layer_norm", dtype, rows, C, x, gamma, beta, y, x_hat, rstd, rows, C, dtype.type(eps))
    return y, x_hat, rstd


def layer_norm_backward(dy: xp.ndarray, x_hat: xp.ndarray, rstd: xp.ndarray, gamma: xp.ndarray) -> Any:
    """As the formula of `functional.layer_norm_backward`: dx, dgamma, dbeta."""
    dtype = common_real(dy, x_hat, rstd, gamma)
    if dtype is None:
        return NotImplemented
    C = dy.shape[-1]
    rows = dy.size // C
    dy, x_hat, rstd, gamma = (xp.ascontiguousarray(array) for array in (dy, x_hat, rstd, gamma))
    dx = xp.empty_like(dy)
    launch_rows("layer_norm_backward_rows", dtype, rows, C, dy, x_hat, rstd, gamma, dx, rows, C)
    return dx, *_column_sums(dy, x_hat, rows, C)


def _column_sums(dy: xp.ndarray, x_hat: xp.ndarray, rows: int, C: int) -> tuple[xp.ndarray, xp.ndarray]:
    """(dgamma, dbeta), both (C,)."""
    rows_of_chunk = max(ceil_div(rows, MOST_CHUNKS), FEWEST_ROWS)
    chunks = ceil_div(rows, rows_of_chunk)
    sums, total = xp.empty((chunks, 2 * C), dy.dtype), xp.empty(2 * C, dy.dtype)
    block = (COLUMNS, PARTS)
    grid = (ceil_div(C, COLUMNS), chunks)
    launch("layer_norm_backward_columns", dy.dtype, grid, block, dy, x_hat, sums, rows, C, rows_of_chunk)
    launch("column_sum", dy.dtype, (ceil_div(2 * C, COLUMNS),), block, sums, total, chunks, 2 * C)
    return total[:C], total[C:]

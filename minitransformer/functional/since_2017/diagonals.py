"""Matrices whose entries depend on the distance of column and row alone, as those of relative positions do."""

from minitransformer.backend import xp


def toeplitz(values: xp.ndarray, T: int, S: int) -> xp.ndarray:
    """One number for each distance s - t, from 1 - T to S - 1, as a matrix: values (H, T + S - 1) -> y (H, T, S).

    Forward    y_hts = x_h,s-t+T-1
    Chain      dx_hd = sum over all (t, s) with s - t + T - 1 = d of dy_hts        see `diagonal_sums`
    """
    H, distances = values.shape
    rows = xp.zeros((H, T, distances + 1), values.dtype)
    rows[:, :, :-1] = values[:, None]
    # with one entry less per row, each row starts one place further left than the row above
    return rows.reshape(H, -1)[:, : T * distances].reshape(H, T, distances)[:, :, T - 1 :]


def diagonal_sums(dy: xp.ndarray) -> xp.ndarray:
    """The sum of each diagonal, the backward of `toeplitz`: dy (H, T, S) -> dx (H, T + S - 1), for s - t from 1 - T."""
    H, T, S = dy.shape
    slanted = xp.zeros((H, T, S + T), dy.dtype)
    slanted[:, :, :S] = dy[:, ::-1]  # the last query first
    # with one entry less per row, each row starts one place further right than the row above
    slanted = slanted.reshape(H, -1)[:, : T * (S + T - 1)].reshape(H, T, S + T - 1)
    return slanted.sum(axis=1)

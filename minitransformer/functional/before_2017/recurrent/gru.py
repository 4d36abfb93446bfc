"""The gated recurrent unit (Cho et al. 2014), in the variant of PyTorch and cuDNN."""

from typing import NamedTuple

from minitransformer.backend import xp
from minitransformer.checks import check_shape
from minitransformer.functional.before_2017.recurrent.steps import (
    State,
    activate,
    check_recurrent,
    check_tokens,
    from_steps,
    to_steps,
)
from minitransformer.functional.reductions import column_sum


class GRUCache(NamedTuple):
    """What `gru` remembers, in the order in which the steps were taken."""

    x: xp.ndarray  # (T, B, I)
    W: xp.ndarray  # (I, 3R)
    U: xp.ndarray  # (R, 3R)
    gates: xp.ndarray  # (T, B, 3R): r, z and n, after their sigmoid or tanh
    candidate: xp.ndarray  # (T, B, R), h U_n + d before the reset gate
    h: xp.ndarray  # (T + 1, B, R), the initial state first
    mask: xp.ndarray | None  # (T, B, 1), False in padding
    reverse: bool


def gru(
    x: xp.ndarray,
    W: xp.ndarray,
    U: xp.ndarray,
    b: xp.ndarray,
    d: xp.ndarray,
    state: State | None = None,
    mask: xp.ndarray | None = None,
    reverse: bool = False,
) -> tuple[tuple[xp.ndarray, State], GRUCache]:
    """Read a sequence token by token: the new state is a mean of the old one and a candidate, weighted by a gate.

    x (B, T, I); W (I, 3R), U (R, 3R) and b (3R,), each the blocks r, z, n side by side, as in PyTorch; d (R,); state
    (h,) with h (B, R), or None for zeros; mask (B, T), boolean, False in padding -> (y, (h,)), y (B, T, R) and the
    state after the last step. With `reverse` the last token is read first. Raises TypeError or ValueError for arrays
    that do not fit together.

    Cho et al. apply the reset gate before the product, n = tanh(x W_n + (r h) U_n), which needs a second product in
    each step. Here, as in PyTorch, it acts after the product. Only then is there a bias d next to b: both belong to n,
    and r acts on one of them.

    Forward    r, z = sigmoid(x_t W + h_{t-1} U + b)        of the first two blocks
               k = h_{t-1} U_n + d        n = tanh(x_t W_n + b_n + r k)
               h_t = z h_{t-1} + (1 - z) n        y_t = h_t
               Padding: h_t = h_{t-1} and y_t = 0, as if the step had not been taken; z is 1 there.
    Jacobian   dh_t/dh_{t-1} = z directly, and through r, z and n      dtanh/da = 1 - n^2      dsigmoid/da = s (1 - s)
    Chain      from the last step to the first, with dh as it arrives from step t + 1 (at the end from the final state):
               dh_t = dy_t + dh
               da_n = dh_t (1 - z) (1 - n^2)        dk = da_n r
               da_z = dh_t (h_{t-1} - n) z (1 - z)        da_r = da_n k r (1 - r)
               to step t - 1:  dh = dh_t z + (da_r, da_z, dk) U^T
               then for all steps at once: dx = da W^T, dW = sum_t x_t^T da_t and db = sum_t da_t with
               da = (da_r, da_z, da_n); dU = sum_t h_{t-1}^T (da_r, da_z, dk)_t, dd = sum_t dk_t
    Remember   x, the gates, k and h
    Check      a sequence in two parts, with the state passed on, gives the same as in one; dx is 0 in padding
    """
    (h0,) = check_recurrent(x, W, U, b, 3, state, "h")
    check_tokens(mask, x.shape[:2])
    check_shape("d", d, h0.shape[1:])
    x = to_steps(x, reverse)
    (T, B, I), R = x.shape, len(U)
    dtype = xp.result_type(x, W, U, b, d, h0)
    scale = xp.ones(3 * R, W.dtype)  # 1/2 for the two sigmoids
    scale[: 2 * R] = 0.5
    gates = (x.reshape(-1, I) @ (W * scale)).astype(dtype, copy=False).reshape(T, B, 3 * R)
    gates += b * scale
    if mask is not None:
        mask = to_steps(mask, reverse)[..., None]  # (T, B, 1)
        xp.copyto(gates[..., R : 2 * R], xp.inf, where=~mask)  # z = 1
    h = xp.empty((T + 1, B, R), dtype)
    h[0] = h0
    candidate = _steps(gates, U * scale, d, h)
    y = h[1:] if mask is None else h[1:] * mask
    return (from_steps(y, reverse), (h[T],)), GRUCache(x, W, U, gates, candidate, h, mask, reverse)


def _steps(gates, U, d, h):
    """Take all steps: fill `gates` and h in place -> k (T, B, R). U is already scaled."""
    R = len(U)
    candidate, product = xp.empty_like(h[1:]), xp.empty_like(gates[0])
    for t in range(len(gates)):
        a, k, new = gates[t], candidate[t], h[t + 1]
        xp.matmul(h[t], U, out=product)
        xp.add(product[:, 2 * R :], d, out=k)
        a[:, : 2 * R] += product[:, : 2 * R]
        activate(a[:, : 2 * R], 0.5, 0.5)
        r, z, n = a[:, :R], a[:, R : 2 * R], a[:, 2 * R :]
        xp.multiply(r, k, out=new)
        n += new
        xp.tanh(n, out=n)
        xp.subtract(1.0, z, out=new)
        new *= n
        old = product[:, :R]  # the product is not needed any more
        xp.multiply(z, h[t], out=old)
        new += old
    return candidate


def gru_backward(
    dy: xp.ndarray, cache: GRUCache, dstate: State | None = None
) -> tuple[xp.ndarray, xp.ndarray, xp.ndarray, xp.ndarray, xp.ndarray, State]:
    """(dx, dW, dU, db, dd, (dh,) of the initial state) from dy (B, T, R); see `gru` for the derivation.

    `dstate` is (dh,) of the final state, or None for zeros. Raises ValueError for a gradient of another shape.
    """
    x, W, U, gates, _, h, mask, reverse = cache
    (T, B, I), R = x.shape, len(U)
    check_shape("dy", dy, (B, T, R))
    dy = to_steps(dy, reverse)
    if mask is not None:
        dy = dy * mask
    dh = xp.zeros((B, R), dy.dtype) if dstate is None else dstate[0].copy()
    check_shape("dh", dh, (B, R))
    da = _slopes(gates, cache.candidate, h)
    transposed_U, passed = xp.ascontiguousarray(U.T), xp.empty_like(dh)
    for t in reversed(range(T)):
        dh += dy[t]
        da[t] *= dh[:, None]
        xp.multiply(dh, gates[t, :, R : 2 * R], out=passed)
        xp.matmul(da[t, :, :3].reshape(B, 3 * R), transposed_U, out=dh)
        dh += passed
    da_rows = da.reshape(T * B, 4 * R)
    dk_rows = da_rows[:, : 3 * R]  # da_r, da_z, dk
    dU = h[:-1].reshape(-1, R).T @ dk_rows
    dd = column_sum(da_rows[:, 2 * R : 3 * R])
    da[:, :, 2] = da[:, :, 3]
    da_rows = dk_rows  # now da_r, da_z, da_n
    dW = x.reshape(-1, I).T @ da_rows
    dx = (da_rows @ W.T).reshape(x.shape)
    return from_steps(dx, reverse), dW, dU, column_sum(da_rows), dd, (dh,)


def _slopes(gates, candidate, h):
    """What dh is multiplied by, for all steps at once -> (T, B, 4, R) for da_r, da_z, dk and da_n."""
    T, B, R = candidate.shape
    gates = gates.reshape(T, B, 3, R)
    r, z, n = (gates[:, :, gate] for gate in range(3))
    da = xp.empty((T, B, 4, R), gates.dtype)
    rest = 1.0 - z
    da_n = da[:, :, 3]
    xp.multiply(n, n, out=da_n)
    xp.subtract(1.0, da_n, out=da_n)
    da_n *= rest
    xp.multiply(da_n, r, out=da[:, :, 2])
    da_z = da[:, :, 1]
    xp.subtract(h[:-1], n, out=da_z)
    da_z *= z
    da_z *= rest
    da_r = da[:, :, 0]
    xp.subtract(1.0, r, out=da_r)
    da_r *= da[:, :, 2]  # (1 - r) r (1 - z) (1 - n^2)
    da_r *= candidate
    return da

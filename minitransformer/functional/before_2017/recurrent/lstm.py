"""Long short-term memory (Hochreiter and Schmidhuber 1997) with a forget gate (Gers, Schmidhuber and Cummins 2000)."""

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


class LSTMCache(NamedTuple):
    """What `lstm` remembers, in the order in which the steps were taken."""

    x: xp.ndarray  # (T, B, I)
    W: xp.ndarray  # (I, 4R)
    U: xp.ndarray  # (R, 4R)
    gates: xp.ndarray  # (T, B, 4R): o, i, f and g, after their sigmoid or tanh
    h: xp.ndarray  # (T + 1, B, R), the initial state first
    c: xp.ndarray  # (T + 1, B, R)
    tanh_c: xp.ndarray  # (T, B, R), of the state after each step
    mask: xp.ndarray | None  # (T, B, 1), False in padding
    reverse: bool


def lstm(
    x: xp.ndarray,
    W: xp.ndarray,
    U: xp.ndarray,
    b: xp.ndarray,
    state: State | None = None,
    mask: xp.ndarray | None = None,
    reverse: bool = False,
) -> tuple[tuple[xp.ndarray, State], LSTMCache]:
    """Read a sequence token by token, with a memory c that changes only as far as three gates let it.

    x (B, T, I); W (I, 4R), U (R, 4R) and b (4R,), each the blocks o, i, f, g side by side; state (h, c), each (B, R),
    or None for zeros; mask (B, T), boolean, False in padding -> (y, (h, c)), y (B, T, R) and the state after the last
    step. With `reverse` the last token is read first. PyTorch has the blocks in the order i, f, g, o, the matrices
    transposed, and two biases of which only the sum matters. Here the three sigmoids come first, and the three gates
    whose gradient is a multiple of dc come last. Raises TypeError or ValueError for arrays that do not fit together.

    Forward    a = x_t W + h_{t-1} U + b        o, i, f = sigmoid(a_o), sigmoid(a_i), sigmoid(a_f)        g = tanh(a_g)
               c_t = f c_{t-1} + i g        h_t = o tanh(c_t)        y_t = h_t
               Padding: c_t = c_{t-1}, h_t = h_{t-1} and y_t = 0, as if the step had not been taken. The gates are
               o = i = 0 and f = 1 there, which is the same, and makes every gradient below 0 or 1 by itself.
    Jacobian   dc_t/dc_{t-1} = f        dh_t/dc_t = o (1 - tanh(c_t)^2)        dsigmoid/da = s (1 - s)
               c_{t-1} reaches c_t by multiplication with f alone. Without a forget gate (1997) this factor is 1.
    Chain      from the last step to the first, with dh and dc as they arrive from step t + 1 (at the end from the
               final state):
               dh_t = dy_t + dh        dc_t = dc + dh_t o (1 - tanh(c_t)^2)
               da_o = dh_t tanh(c_t) o (1 - o)        da_i = dc_t g i (1 - i)
               da_f = dc_t c_{t-1} f (1 - f)          da_g = dc_t i (1 - g^2)
               to step t - 1:  dh = da U^T        dc = dc_t f
               then for all steps at once:
               dx = da W^T        dW = sum_t x_t^T da_t        dU = sum_t h_{t-1}^T da_t        db = sum_t da_t
    Remember   x, the gates, h, c and tanh(c)
    Check      a sequence in two parts, with the state passed on, gives the same as in one; dx is 0 in padding
    """
    h0, c0 = check_recurrent(x, W, U, b, 4, state, "hc")
    check_tokens(mask, x.shape[:2])
    x = to_steps(x, reverse)
    (T, B, I), R = x.shape, len(U)
    dtype = xp.result_type(x, W, U, b, h0, c0)
    scale = _scale(B, R, W)
    gates = (x.reshape(-1, I) @ (W * scale[0])).astype(dtype, copy=False).reshape(T, B, 4 * R)
    padding = None
    if mask is not None:
        mask = to_steps(mask, reverse)[..., None]  # (T, B, 1)
        padding = ~mask
        xp.copyto(gates[..., : 2 * R], -xp.inf, where=padding)  # o = i = 0
        xp.copyto(gates[..., 2 * R : 3 * R], xp.inf, where=padding)  # f = 1
    h, c = xp.empty((T + 1, B, R), dtype), xp.empty((T + 1, B, R), dtype)
    h[0], c[0] = h0, c0
    y, tanh_c = _steps(gates, U * scale[0], b * scale, scale, h, c, padding)
    return (from_steps(y, reverse), (h[T], c[T])), LSTMCache(x, W, U, gates, h, c, tanh_c, mask, reverse)


def _scale(B, R, like):
    """1/2 for the three sigmoids and 1 for tanh (B, 4R): whole rows, as broadcasting costs NumPy time."""
    scale = xp.ones((B, 4 * R), like.dtype)
    scale[:, : 3 * R] = 0.5
    return scale


def _steps(gates, U, b, scale, h, c, padding):
    """Take all steps: fill `gates`, h and c in place -> y and tanh(c), both (T, B, R). U and b are already scaled."""
    R, shift = len(U), 1.0 - scale
    tanh_c, product, new = xp.empty_like(c[1:]), xp.empty_like(gates[0]), xp.empty_like(c[0])
    y = h[1:] if padding is None else xp.empty_like(h[1:])
    for t in range(len(gates)):
        a = gates[t]
        xp.matmul(h[t], U, out=product)
        a += product
        a += b
        activate(a, scale, shift)
        o, i, f, g = a[:, :R], a[:, R : 2 * R], a[:, 2 * R : 3 * R], a[:, 3 * R :]
        xp.multiply(f, c[t], out=c[t + 1])
        xp.multiply(i, g, out=new)
        c[t + 1] += new
        xp.tanh(c[t + 1], out=tanh_c[t])
        xp.multiply(o, tanh_c[t], out=y[t])
        if padding is not None:
            xp.multiply(h[t], padding[t], out=h[t + 1])
            h[t + 1] += y[t]
    return y, tanh_c


def lstm_backward(
    dy: xp.ndarray, cache: LSTMCache, dstate: State | None = None
) -> tuple[xp.ndarray, xp.ndarray, xp.ndarray, xp.ndarray, State]:
    """(dx, dW, dU, db, (dh, dc) of the initial state) from dy (B, T, R); see `lstm` for the derivation.

    `dstate` is (dh, dc) of the final state, or None for zeros. Raises ValueError for a gradient of another shape.
    """
    x, W, U, _, h, _, _, mask, reverse = cache
    (T, B, I), R = x.shape, len(U)
    check_shape("dy", dy, (B, T, R))
    dy = to_steps(dy, reverse)
    if mask is not None:
        dy = dy * mask
    dh, dc = (xp.zeros((B, R), dy.dtype) for _ in "hc") if dstate is None else (array.copy() for array in dstate)
    check_shape("dh", dh, (B, R))
    check_shape("dc", dc, (B, R))
    da = _steps_back(dy, dh, dc, cache)
    da_rows = da.reshape(T * B, 4 * R)
    dW = x.reshape(-1, I).T @ da_rows
    dU = h[:-1].reshape(-1, R).T @ da_rows
    dx = (da_rows @ W.T).reshape(x.shape)
    return from_steps(dx, reverse), dW, dU, column_sum(da_rows), (dh, dc)


def _steps_back(dy, dh, dc, cache):
    """Take all steps backwards: turn dh and dc of the final state into those of the initial one -> da (T, B, 4R)."""
    _, _, U, gates, _, c, tanh_c, mask, _ = cache
    R = len(U)
    da, transposed_U = xp.empty(gates.shape, dh.dtype), xp.ascontiguousarray(U.T)
    is_tanh, slope, new = 2.0 * _scale(len(dh), R, U) - 1.0, xp.empty_like(da[0]), xp.empty_like(dh)
    padding = None if mask is None else ~mask
    for t in reversed(range(len(da))):
        d, a = da[t], gates[t]
        o, i, f, g = a[:, :R], a[:, R : 2 * R], a[:, 2 * R : 3 * R], a[:, 3 * R :]
        dh += dy[t]
        xp.multiply(tanh_c[t], tanh_c[t], out=new)
        xp.subtract(1.0, new, out=new)
        new *= o
        new *= dh
        dc += new
        for gate, (upstream, factor) in enumerate(((dh, tanh_c[t]), (dc, g), (dc, c[t]), (dc, i))):
            xp.multiply(upstream, factor, out=d[:, gate * R : (gate + 1) * R])
        xp.add(a, is_tanh, out=slope)
        d *= slope
        xp.subtract(1.0, a, out=slope)
        d *= slope  # s (1 - s), and (1 + g) (1 - g)
        dc *= f
        if padding is not None:
            xp.multiply(dh, padding[t], out=new)
        xp.matmul(d, transposed_U, out=dh)
        if padding is not None:
            dh += new
    return da

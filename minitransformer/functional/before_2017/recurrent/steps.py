"""What the recurrent functions share: arrays in the order of the steps, sigmoids made of tanh, and the checks.

Inside, the first axis is time, (T, B, ...), so that what one step reads and writes is one contiguous block.
"""

from collections.abc import Sequence

from minitransformer.backend import xp
from minitransformer.checks import check_numbers, check_shape

State = tuple[xp.ndarray, ...]  # (h, c) of an LSTM and (h,) of a GRU, each (B, R)


def to_steps(x: xp.ndarray, reverse: bool) -> xp.ndarray:
    """x (B, T, ...) -> the same as a contiguous array (T, B, ...), the last step first if `reverse`."""
    x = x.swapaxes(0, 1)
    return xp.ascontiguousarray(x[::-1] if reverse else x)


def from_steps(y: xp.ndarray, reverse: bool) -> xp.ndarray:
    """y (T, B, ...) -> the view (B, T, ...) of it that undoes `to_steps`: the next layer will need no copy."""
    return (y[::-1] if reverse else y).swapaxes(0, 1)


def activate(a: xp.ndarray, scale: xp.ndarray | float, shift: xp.ndarray | float) -> None:
    """In place, shift + scale * tanh(a): the sigmoid of 2a where both are 1/2, and tanh(a) where they are 1 and 0.

    sigma(2a) = (1 + tanh(a)) / 2. So one call computes all gates, and no exp can overflow. That the products with the
    weights give a/2 costs nothing: the weights are halved once, which loses no digit.
    """
    xp.tanh(a, out=a)
    a *= scale
    a += shift


def check_recurrent(
    x: xp.ndarray, W: xp.ndarray, U: xp.ndarray, b: xp.ndarray, blocks: int, state: State | None, names: str
) -> State:
    """The state to start from: `state`, or zeros for None.

    Raises TypeError or ValueError unless x is (B, T, I), W (I, blocks R), U (R, blocks R), b (blocks R,), and each
    array of the state, whose `names` are letters, (B, R).
    """
    check_numbers("x", x)
    if x.ndim != 3 or 0 in x.shape:
        raise ValueError(f"x must be of shape (B, T, I), with at least one token, got {tuple(x.shape)}")
    R = len(U)
    check_shape("W", W, (x.shape[-1], blocks * R))
    check_shape("U", U, (R, blocks * R))
    check_shape("b", b, (blocks * R,))
    if state is None:
        return tuple(xp.zeros((len(x), R), U.dtype) for _ in names)
    if len(state) != len(names):
        raise ValueError(f"the state must be ({', '.join(names)}), got {len(state)} arrays")
    for name, array in zip(names, state, strict=True):
        check_shape(name, array, (len(x), R))
    return tuple(state)


def check_tokens(mask: xp.ndarray | None, shape: Sequence[int]) -> None:
    """TypeError or ValueError unless `mask` is None or boolean, of `shape` (B, T)."""
    if mask is None:
        return
    if getattr(getattr(mask, "dtype", None), "kind", None) != "b":
        raise TypeError("mask must be a boolean array with True = a token and False = padding")
    check_shape("mask", mask, shape)

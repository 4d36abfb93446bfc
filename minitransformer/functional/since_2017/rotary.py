"""Rotary positions, RoPE (Su et al. 2021): queries and keys are rotated by an angle that grows with their position."""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from minitransformer.backend import xp


def rotary_tables(
    length: int,
    width: int,
    base: float = 10000.0,
    dtype: DTypeLike = np.float32,
    factor: float = 1.0,
    original_len: int | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """The cosines and sines by which `rotate` turns each pair of features at each position -> two (length, width / 2).

    cos(a[t, i]) and sin(a[t, i])        a[t, i] = t base^(-2i / width)        (Su et al. 2021, equation 15)

    With the base 10000 these are the entries of `sinusoidal_positions`: there they are added, here they multiply.
    Computed in float64 and then cast. A `factor` other than 1 stretches a model that has been trained on short texts:

        original_len = None: all angles are divided by it, as if tokens were closer together (Chen et al. 2023)
        original_len = L:    Llama 3.1. Pairs that turn more than 4 times in L tokens, which tell neighbors apart, keep
                             their angles; of those that turn less than once, angles are divided; of the others with n
                             turns in L tokens, the share (n - 1) / (4 - 1) is kept, and the rest divided

    Raises ValueError for an odd width.
    """
    if width % 2:
        raise ValueError(f"rotary positions turn pairs of features, so the width of a head must be even, got {width}")
    pair = np.arange(0, width, 2, dtype=np.float64)  # the 2i of the formula
    speeds = np.exp(-math.log(base) * pair / width)  # (width / 2,), the angle from one token to the next
    kept = 0.0 if original_len is None else np.clip((original_len * speeds / (2 * math.pi) - 1) / (4 - 1), 0.0, 1.0)
    angles = np.outer(np.arange(length), kept * speeds + (1 - kept) * speeds / factor)  # (length, width / 2)
    return np.cos(angles).astype(dtype), np.sin(angles).astype(dtype)


class RotaryCache(NamedTuple):
    """What `rotate` remembers."""

    cos: xp.ndarray  # (T, D / 2)
    sin: xp.ndarray  # (T, D / 2)


def rotate(x: xp.ndarray, cos: xp.ndarray, sin: xp.ndarray) -> tuple[xp.ndarray, RotaryCache]:
    """Turn each pair of features (2i, 2i + 1) in its plane, by the angle a_ti of position t and pair i.

    x (B, H, T, D), cos and sin (T, D / 2) of the angles, from `rotary_tables` -> y (B, H, T, D). If q and k are turned
    alike, q_t . k_s depends on their positions only through t - s: one angle undoes the other. v is not turned. Raises
    TypeError if x and the tables have different precisions.

    Pairs of neighbors are the paper's, and LLaMA's own. GPT-NeoX and Hugging Face pair i with i + D / 2 instead. The
    result is the same except for the order of a head's features: weights of one kind serve the other once the columns
    of W^Q and W^K are permuted.

    Forward    y_2i   = x_2i cos a_ti - x_2i+1 sin a_ti
               y_2i+1 = x_2i sin a_ti + x_2i+1 cos a_ti         as one number: x_2i + j x_2i+1, times e^(j a_ti)
    Chain      dx_2i   =  dy_2i cos a_ti + dy_2i+1 sin a_ti
               dx_2i+1 = -dy_2i sin a_ti + dy_2i+1 cos a_ti     the transposed rotation, which turns back
    Remember   only the cosines and sines
    Check      y is as long as x, and dx as dy; rotate_backward(rotate(x)) is x
    """
    return _turn(x, cos + 1j * sin), RotaryCache(cos, sin)


def rotate_backward(dy: xp.ndarray, cache: RotaryCache) -> xp.ndarray:
    """dx from dy (B, H, T, D): the rotation by the opposite angles; see `rotate` for the derivation."""
    cos, sin = cache
    return _turn(dy, cos - 1j * sin)


def _turn(x: xp.ndarray, turns: xp.ndarray) -> xp.ndarray:
    """The pairs of x (B, H, T, D), as complex numbers, times `turns` (T, D / 2): one product, and no other temporary.

    This is five times as fast as four products of every other feature. A complex x, as in a complex-step check, does
    not hold such pairs: its real and its imaginary part are turned separately.
    """
    if x.dtype.kind == "c":
        return _turn(x.real, turns) + 1j * _turn(x.imag, turns)
    if turns.dtype.itemsize != 2 * x.dtype.itemsize:
        raise TypeError(f"x is {x.dtype}, but the cosines and sines belong to another dtype: {turns.dtype} as pairs")
    if x.strides[-1] != x.itemsize:
        x = xp.ascontiguousarray(x)
    return (x.view(turns.dtype) * turns).view(x.dtype)

"""Convolution along a sequence: each output is a sum over a few neighboring tokens, each with a matrix of its own."""

from typing import NamedTuple

from minitransformer.backend import xp
from minitransformer.checks import check_integer, check_shape
from minitransformer.functional.before_2017.recurrent.steps import check_tokens
from minitransformer.functional.reductions import column_sum


class Conv1dCache(NamedTuple):
    """What `conv1d` remembers."""

    padded: xp.ndarray  # (B, T + R, I), the input between zeros
    W: xp.ndarray  # (K, I, O)
    dilation: int
    before: int  # zeros before the first token
    mask: xp.ndarray | None  # (B, T)


def conv1d(
    x: xp.ndarray,
    W: xp.ndarray,
    b: xp.ndarray | None = None,
    dilation: int = 1,
    causal: bool = True,
    mask: xp.ndarray | None = None,
) -> tuple[xp.ndarray, Conv1dCache]:
    """y_t = sum_k x_(t + k d - before) W_k + b, with zeros beyond both ends of x (paper table 1, third row).

    x (B, T, I), W (K, I, O), b (O,) or None -> y (B, T, O). K is the kernel size and d the dilation, the distance
    between the tokens that one output reads. R = (K - 1) d is the distance from the first of them to the last. A causal
    convolution has all zeros before the first token, so no output sees a later token; otherwise R // 2 zeros come
    before it and the rest after the last, as in PyTorch's padding="same". PyTorch stores W as (O, I, K).

    mask (B, T) is boolean, True for tokens and False for padding, or None if there is no padding. Padding is read as
    zeros, so a padded sequence has the outputs of the sequence alone. A causal convolution needs this only for padding
    on the left. Raises ValueError or TypeError for other shapes, and for a dilation less than 1.

    Forward    y_bto = sum_ki p_b(t + k d)i W_kio + b_o        p is x between zeros: p_b(before + t)i = x_bti
    Jacobian   dy_bto/dp_bsi = sum_k 1[s = t + k d] W_kio      dy_bto/dW_kio = p_b(t + k d)i      dy_bto/db_o = 1
    Chain      dp_bsi = sum_ko dy_b(s - k d)o W_kio            dy moves back by the steps that x was read ahead:
                                                               a convolution with the kernel flipped and transposed
               dx_bti = dp_b(before + t)i                      the gradient of the zeros is dropped
               dW_kio = sum_bt p_b(t + k d)i dy_bto            db_o = sum_bt dy_bto
    Remember   p and W. One matrix product per tap k reads p where it is. Copying all that each output reads
               into one row, for a single product, took as long, within 20 %, and K times the memory.
    Check      K = 1 is `linear`; dilation d acts on each of the d interleaved sequences x_(j + d n) as dilation 1
    """
    T, reach = _check(x, W, b, dilation, mask)
    before = reach if causal else reach // 2
    padded = xp.zeros((x.shape[0], T + reach, x.shape[2]), x.dtype)
    padded[:, before : before + T] = x if mask is None else x * mask[..., None]
    return slide(padded, W, b, dilation), Conv1dCache(padded, W, dilation, before, mask)


def slide(padded: xp.ndarray, W: xp.ndarray, b: xp.ndarray | None, dilation: int) -> xp.ndarray:
    """y_t = sum_k padded_(t + k d) W_k + b, only where the whole kernel fits: padded (B, T + R, I) -> y (B, T, O)."""
    T = padded.shape[1] - (len(W) - 1) * dilation
    y = padded[:, :T] @ W[0]  # (B, T, O)
    for k in range(1, len(W)):
        y += padded[:, k * dilation : k * dilation + T] @ W[k]
    if b is not None:
        y += b
    return y


def conv1d_backward(dy: xp.ndarray, cache: Conv1dCache) -> tuple[xp.ndarray, xp.ndarray, xp.ndarray]:
    """(dx, dW, db) from dy (B, T, O); see `conv1d` for the derivation."""
    padded, W, dilation, before, mask = cache
    T = dy.shape[1]
    rows = dy.reshape(-1, dy.shape[-1])  # (N, O)
    dpadded, dW = xp.zeros(padded.shape, dy.dtype), xp.empty(W.shape, dy.dtype)
    for k in range(len(W)):
        read = slice(k * dilation, k * dilation + T)  # what tap k has read
        dpadded[:, read] += (rows @ W[k].T).reshape(*dy.shape[:2], -1)
        dW[k] = padded[:, read].reshape(-1, W.shape[1]).T @ rows
    dx = dpadded[:, before : before + T]
    if mask is not None:
        dx = dx * mask[..., None]
    return dx, dW, column_sum(rows)


def _check(x, W, b, dilation, mask):
    """T, and the distance R between the first and the last token that one output reads."""
    check_integer("dilation", dilation, least=1)
    if x.ndim != 3 or W.ndim != 3 or x.shape[2] != W.shape[1] or not len(W):
        raise ValueError(f"x and W must be of shape (B, T, I) and (K, I, O), got {tuple(x.shape)} and {tuple(W.shape)}")
    if b is not None:
        check_shape("b", b, W.shape[2:])
    check_tokens(mask, x.shape[:2])
    return x.shape[1], (len(W) - 1) * dilation

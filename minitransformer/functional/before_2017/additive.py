"""Additive attention (Bahdanau, Cho and Bengio 2015), the first attention over a source."""

from typing import NamedTuple

from minitransformer.backend import xp
from minitransformer.checks import check_numbers, check_shape
from minitransformer.functional.softmax import softmax, softmax_backward


class AdditiveAttentionCache(NamedTuple):
    """What `additive_attention` remembers."""

    v: xp.ndarray  # (B, S, E)
    w: xp.ndarray  # (A,)
    tanh: xp.ndarray  # (B, T, S, A)
    weights: xp.ndarray  # (B, T, S), after the softmax


def additive_attention(
    q: xp.ndarray, k: xp.ndarray, v: xp.ndarray, w: xp.ndarray, allowed: xp.ndarray | None = None
) -> tuple[xp.ndarray, AdditiveAttentionCache]:
    """softmax(w . tanh(q + k)) v: a small network decides how well a query and a key match, not their dot product.

    q (B, T, A), k (B, S, A), v (B, S, E), w (A,), allowed boolean and broadcastable to (B, T, S), True = may attend
    -> y (B, T, E). A query that may attend to nothing gets y = 0. The paper's W_a s and U_a h are q and k, computed by
    the caller. Raises TypeError or ValueError for arrays that do not fit together.

    Compared with a dot product, the scores cost a tanh for each of the A features of each pair, and that array
    (B, T, S, A) must be kept for backward.

    Forward    u_tia = tanh(q_ta + k_ia)        s_ti = sum_a w_a u_tia        p = softmax(s)        y = p v
    Chain      dv = p^T dy        dp = dy v^T        ds = softmax backward        dw_a = sum_bti ds_ti u_tia
               de_tia = ds_ti w_a (1 - u_tia^2)        dq_ta = sum_i de_tia        dk_ia = sum_t de_tia
    Remember   u, p, v and w
    Check      the sum of dq over t is the sum of dk over i: moving all queries is moving all keys
    """
    for name, array in (("q", q), ("k", k), ("v", v)):
        check_numbers(name, array)
    if not q.ndim == k.ndim == v.ndim == 3 or not len(q) == len(k) == len(v) or k.shape[1] != v.shape[1]:
        shapes = " and ".join(str(tuple(array.shape)) for array in (q, k, v))
        raise ValueError(f"q, k and v must be of shape (B, T, A), (B, S, A) and (B, S, E), got {shapes}")
    check_shape("k", k, (*k.shape[:2], q.shape[2]))
    check_shape("w", w, q.shape[2:])
    u = q[:, :, None] + k[:, None]  # (B, T, S, A)
    xp.tanh(u, out=u)
    weights, _ = softmax((u.reshape(-1, len(w)) @ w).reshape(u.shape[:3]), allowed, overwrite=True)
    return weights @ v, AdditiveAttentionCache(v, w, u, weights)


def additive_attention_backward(
    dy: xp.ndarray, cache: AdditiveAttentionCache
) -> tuple[xp.ndarray, xp.ndarray, xp.ndarray, xp.ndarray]:
    """(dq, dk, dv, dw) from dy (B, T, E); see `additive_attention` for the derivation."""
    v, w, u, weights = cache
    check_shape("dy", dy, (*weights.shape[:2], v.shape[2]))
    dv = weights.swapaxes(-1, -2) @ dy
    dscores = softmax_backward(dy @ v.swapaxes(-1, -2), weights)
    dw = dscores.reshape(-1) @ u.reshape(-1, len(w))
    de = u * u
    xp.subtract(1.0, de, out=de)
    de *= w
    de *= dscores[..., None]
    return de.sum(axis=2), de.sum(axis=1), dv, dw

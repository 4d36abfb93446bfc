"""Scaled dot-product attention (paper section 3.2.1, equation 1), for all heads at once, and its masks.

Masks say which positions may attend to which. They are boolean, True = may attend; combine two with `&`.
"""

import math
from typing import NamedTuple

import numpy as np

from minitransformer.backend import xp
from minitransformer.checks import check_attention
from minitransformer.functional.dropout import DropoutCache, dropout, dropout_backward
from minitransformer.functional.heads import product_of_heads, repeat_heads, repeat_heads_backward
from minitransformer.functional.softmax import softmax, softmax_backward


class AttentionCache(NamedTuple):
    """What `scaled_dot_product_attention` remembers."""

    q: xp.ndarray  # (B, H, T, D), times the scale
    k: xp.ndarray  # (B, H, S, D)
    v: xp.ndarray  # (B, H, S, D)
    weights: xp.ndarray  # (B, H, T, S), after the softmax and before any dropout
    keep: DropoutCache | None  # the dropout mask of the weights, or None
    scale: float
    biased: bool  # whether there was a bias
    groups: tuple[int, ...]  # (G,), the heads of keys and values before they were repeated


def scaled_dot_product_attention(
    q: xp.ndarray,
    k: xp.ndarray,
    v: xp.ndarray,
    allowed: xp.ndarray | None = None,
    dropout_rate: float = 0.0,
    rng: np.random.Generator | None = None,
    bias: xp.ndarray | None = None,
    scale: float | None = None,
) -> tuple[xp.ndarray, AttentionCache]:
    """softmax(q k^T / sqrt(D)) v: each query takes the mean of the values, weighted by how well the keys match.

    q (B, H, T, D), k (B, G, S, D), v (B, G, S, D), allowed boolean and broadcastable to (B, H, T, S), True = may
    attend -> y (B, H, T, D). A query that may attend to nothing gets y = 0. Raises TypeError or ValueError for arrays
    that do not fit together.

    In the paper G = H, each head has keys of its own; with grouped queries, H / G heads share them (`repeat_heads`).
    Three more options are not in the paper's text: dropout on the weights (it is in the authors' code), `bias`
    (H, T, S), which is added to the scores of every sequence (relative positions: T5, ALiBi), and a `scale` other than
    1 / sqrt(D) (T5 has 1).

    Forward    s_ti = sum_d q_td k_id / sqrt(D)        p = softmax(s)        y_td = sum_i p_ti v_id
    Chain      last step first; each line is the rule for a matrix product or for the softmax:
               dv_id = sum_t p_ti dy_td                      dv = p^T dy
               dp_ti = sum_d dy_td v_id                      dp = dy v^T
               ds_ti = p_ti (dp_ti - sum_j p_tj dp_tj)       "better than the average of what I attend to"
               dq_td = sum_i ds_ti k_id / sqrt(D)            dq = ds k / sqrt(D)
               dk_id = sum_t ds_ti q_td / sqrt(D)            dk = ds^T q / sqrt(D)
               dbias_hti = sum_b ds_bhti                     as one bias is added for every sequence of the batch
               With grouped queries, dk and dv are then summed over the heads that share keys.
    Remember   q times the scale, k, v and p
    Check      the sum of dk over i is 0: adding one vector to all keys changes no weight
    """
    check_attention(q, k, v)
    D = q.shape[-1]
    scale = 1.0 / math.sqrt(D) if scale is None else scale
    q = q * scale  # fewer numbers to scale than the scores are
    groups = k.shape[-3:-2]  # (G,)
    k, v = repeat_heads(k, q), repeat_heads(v, q)  # (B, H, S, D)
    scores = q @ k.swapaxes(-1, -2)  # (B, H, T, S)
    if bias is not None:
        scores += bias
    weights, _ = softmax(scores, allowed, overwrite=True)
    dropped, keep = dropout(weights, dropout_rate, rng)
    y = product_of_heads(dropped, v)
    return y, AttentionCache(q, k, v, weights, keep, scale, bias is not None, groups)


def scaled_dot_product_attention_backward(
    dy: xp.ndarray, cache: AttentionCache
) -> tuple[xp.ndarray, xp.ndarray, xp.ndarray, xp.ndarray | None]:
    """(dq, dk, dv, dbias) from dy (B, H, T, D); dbias (H, T, S) is None if there was no bias.

    See `scaled_dot_product_attention` for the derivation.
    """
    q, k, v, weights, keep, scale, biased, groups = cache
    dropped = dropout_backward(weights, keep)  # the same masking as in forward
    dv = product_of_heads(dropped.swapaxes(-1, -2), dy)  # (B, H, S, D)
    dweights = dropout_backward(dy @ v.swapaxes(-1, -2), keep)  # (B, H, T, S)
    dscores = softmax_backward(dweights, weights)
    dq = product_of_heads(dscores, k)  # (B, H, T, D)
    dq *= scale
    dk = product_of_heads(dscores.swapaxes(-1, -2), q)  # (B, H, S, D), where q is already scaled
    dk, dv = repeat_heads_backward(dk, groups), repeat_heads_backward(dv, groups)  # (B, G, S, D)
    return dq, dk, dv, dscores.sum(axis=0) if biased else None


def padding_mask(ids: xp.ndarray, pad: int | None = 0) -> xp.ndarray:
    """No position may attend to padding: ids (B, S) -> (B, 1, 1, S), to be broadcast over heads and queries.

    With pad = None nothing is padding.
    """
    allowed = xp.ones(ids.shape, dtype=bool) if pad is None else ids != pad
    return allowed[:, None, None, :]


def causal_mask(length: int) -> xp.ndarray:
    """Position t may attend to the positions up to t, itself included -> (1, 1, T, T), lower triangular.

    With the target shifted right by one this keeps a prediction from seeing its own answer (paper section 3.1).
    """
    return xp.tril(xp.ones((length, length), dtype=bool))[None, None]

"""Scaled dot-product attention (paper section 3.2.1, equation 1), for all heads at once."""

import math
from typing import NamedTuple

from minitransformer.backend import xp
from minitransformer.checks import check_attention
from minitransformer.functional.dropout import dropout, dropout_backward
from minitransformer.functional.softmax import softmax, softmax_backward


class AttentionCache(NamedTuple):
    """What `scaled_dot_product_attention` remembers."""

    q: xp.ndarray  # (B, H, T, D), times the scale
    k: xp.ndarray  # (B, H, S, D)
    v: xp.ndarray  # (B, H, S, D)
    weights: xp.ndarray  # (B, H, T, S), after the softmax and before any dropout
    keep: object  # the dropout mask of the weights, or None
    scale: float
    biased: bool  # whether there was a bias


def scaled_dot_product_attention(q, k, v, allowed=None, dropout_rate=0.0, rng=None, bias=None, scale=None):
    """softmax(q k^T / sqrt(D)) v: each query takes the mean of the values, weighted by how well the keys match.

    q (B, H, T, D), k (B, H, S, D), v (B, H, S, D), allowed boolean and broadcastable to (B, H, T, S), True = may
    attend -> y (B, H, T, D). A query that may attend to nothing gets y = 0. Dropout on the weights is not in the
    paper's text, but in its authors' code; its default is off. Nor is `bias` (H, T, S), which is added to the scores
    of every sequence (relative positions: T5, ALiBi), nor another `scale` than 1 / sqrt(D) (T5 has 1).

    Forward    s_ti = sum_d q_td k_id / sqrt(D)        p = softmax(s)        y_td = sum_i p_ti v_id
    Chain      last step first; each line is the rule of a matrix product or of the softmax:
               dv_id = sum_t p_ti dy_td                      dv = p^T dy
               dp_ti = sum_d dy_td v_id                      dp = dy v^T
               ds_ti = p_ti (dp_ti - sum_j p_tj dp_tj)       "better than the average of what I attend to"
               dq_td = sum_i ds_ti k_id / sqrt(D)            dq = ds k / sqrt(D)
               dk_id = sum_t ds_ti q_td / sqrt(D)            dk = ds^T q / sqrt(D)
               dbias_hti = sum_b ds_bhti                     where one bias is added for every sequence of the batch
    Remember   q times the scale, k, v and p
    Check      the sum of dk over i is 0: adding one vector to all keys changes no weight
    """
    check_attention(q, k, v)
    D = q.shape[-1]
    scale = 1.0 / math.sqrt(D) if scale is None else scale
    q = q * scale  # fewer numbers to scale than in the scores
    scores = q @ k.swapaxes(-1, -2)  # (B, H, T, S)
    if bias is not None:
        scores += bias
    weights, _ = softmax(scores, allowed, overwrite=True)
    dropped, keep = dropout(weights, dropout_rate, rng)
    return dropped @ v, AttentionCache(q, k, v, weights, keep, scale, bias is not None)


def scaled_dot_product_attention_backward(dy, cache):
    """(dq, dk, dv) from dy (B, H, T, D), and dbias (H, T, S) as the fourth if there was a bias.

    The derivation stands in `scaled_dot_product_attention`.
    """
    q, k, v, weights, keep, scale, biased = cache
    dropped = dropout_backward(weights, keep)  # the same masking as in forward
    dv = dropped.swapaxes(-1, -2) @ dy  # (B, H, S, D)
    dweights = dropout_backward(dy @ v.swapaxes(-1, -2), keep)  # (B, H, T, S)
    dscores = softmax_backward(dweights, weights)
    dq = dscores @ k  # (B, H, T, D)
    dq *= scale
    dk = dscores.swapaxes(-1, -2) @ q  # (B, H, S, D), where q is scaled already
    return (dq, dk, dv, dscores.sum(axis=0)) if biased else (dq, dk, dv)

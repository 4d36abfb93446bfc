"""Softmax, cross-entropy and label smoothing in one step, so that no logarithm of 0 is ever taken."""

from typing import NamedTuple

from minitransformer.backend import fused_on_gpu, xp
from minitransformer.checks import check_numbers, check_rate, check_targets
from minitransformer.functional.reductions import row_max, row_mean, row_sum

BLOCK = 2**18  # logits worked on at a time: what is read four times should still be in the processor's cache


class CrossEntropyCache(NamedTuple):
    """What `cross_entropy` remembers."""

    p: xp.ndarray  # (N, V), the predicted distribution
    targets: xp.ndarray  # (N,)
    share: xp.ndarray  # (N,), 1 / M for a token that counts and 0 for padding
    smoothing: float
    shape: tuple  # of the logits
    overwrite: bool


@fused_on_gpu
def cross_entropy(logits, targets, smoothing=0.0, pad=0, overwrite=False):
    """Mean cross-entropy in nats between smoothed targets and softmax(logits), over the tokens that are not padding.

    logits (..., V), targets (...) integers -> loss, a 0-d array. Label smoothing (paper section 5.4) as its source
    Szegedy et al. (2016) section 7 has it: the right token gets 1 - eps, and eps is spread evenly over all V tokens,
    the right one included. Tokens with target = pad take no part; M is the number of the others. With none, the loss
    is 0. With `overwrite`, the logits' own array holds p after forward and dlogits after backward: the largest array
    of a training step, for a caller that has no more use for what was in it.

    Forward    q_v = (1 - eps) 1[v = target] + eps / V      loss = -1/M sum_n sum_v q_nv log p_nv,  p = softmax(z)
               log p_v = z_v - log sum_u exp(z_u)
    Jacobian   d(log p_u)/dz_v = 1[u = v] - p_v
    Chain      dz_nv = -1/M sum_u q_nu (1[u = v] - p_nv) = (p_nv - q_nv) / M      since q sums to 1; 0 for padding
    Remember   p, the targets and 1/M
    Check      each row of dz sums to 0; rows of padding are 0; the loss never falls below the entropy of q
    """
    check_numbers("logits", logits)
    check_rate("smoothing", smoothing)
    V = logits.shape[-1]
    check_targets(targets, logits.shape[:-1], V, pad)
    p, targets_n = logits.reshape(-1, V), targets.reshape(-1)  # (N, V), (N,)
    if not overwrite:
        p = p.copy()
    counts = targets_n != pad
    share = counts.astype(logits.real.dtype)  # not after the division: a quotient of integers is float64
    share /= xp.maximum(share.sum(), 1)
    losses = xp.empty(len(p), p.dtype)
    for rows in _blocks(p):
        losses[rows] = _softmax_and_losses(p[rows], targets_n[rows], smoothing)
    return losses @ share, CrossEntropyCache(p, targets_n, share, smoothing, logits.shape, overwrite)


@fused_on_gpu
def cross_entropy_backward(dloss, cache):
    """dlogits (..., V) from dloss, 1 for the loss itself; the derivation stands in `cross_entropy`."""
    p, targets, share, smoothing, shape, overwrite = cache
    dz = p if overwrite else p.copy()
    for rows in _blocks(dz):
        dz_rows = dz[rows]
        dz_rows -= smoothing / dz.shape[-1]
        dz_rows[xp.arange(len(dz_rows)), targets[rows]] -= 1.0 - smoothing  # one entry a row: no index comes twice
        dz_rows *= (share[rows] * dloss)[:, None]
    return dz.reshape(shape)


def _softmax_and_losses(z, targets, smoothing):
    """Turn the logits z (n, V) into softmax(z) in place, and return each row's loss (n,).

    -sum_v q_v log p_v, with log p_v = z_v - log(total) and q written out.
    """
    z -= row_max(z)
    right = z[xp.arange(len(z)), targets]
    mean = row_mean(z)[:, 0] if smoothing else 0.0
    xp.exp(z, out=z)
    total = row_sum(z)
    z /= total
    return xp.log(total[:, 0]) - (1.0 - smoothing) * right - smoothing * mean


def _blocks(rows):
    """Slices that cut (N, V) into blocks of about BLOCK numbers."""
    N, V = rows.shape
    step = max(1, BLOCK // V)
    return [slice(start, start + step) for start in range(0, N, step)]

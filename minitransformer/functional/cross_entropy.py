"""Softmax, cross-entropy and label smoothing in one step, so that no logarithm of 0 is ever taken."""

from typing import Any, NamedTuple

from minitransformer.backend import fused, xp
from minitransformer.checks import check_integer, check_numbers, check_rate, check_shape, check_targets
from minitransformer.functional.reductions import blocks, row_max, row_mean, row_sum

NOT_AN_ID = -1  # the padding of a model that has none


class CrossEntropyCache(NamedTuple):
    """What `cross_entropy` remembers."""

    p: xp.ndarray  # (N, V), the predicted distribution
    targets: xp.ndarray  # (N,)
    share: xp.ndarray  # (N,), 1 / count for a token that counts and 0 for padding
    smoothing: float
    shape: tuple[int, ...]  # of the logits
    overwrite: bool


def cross_entropy(
    logits: xp.ndarray, targets: xp.ndarray, smoothing: float = 0.0, pad: int | None = 0, overwrite: bool = False
) -> tuple[xp.ndarray, CrossEntropyCache]:
    """Mean cross-entropy in nats between smoothed targets and softmax(logits), over the tokens that are not padding.

    logits (..., V), targets (...) integers -> loss, a 0-d array. Label smoothing (paper section 5.4) is that of its
    source, Szegedy et al. (2016) section 7: the right token gets 1 - eps, and eps is spread evenly over all V tokens,
    the right one included. Tokens with target = pad, a whole number that need not be in the vocabulary, do not count;
    with pad = None every token does. `count` is the number of those that count; if there are none, the loss is 0. With
    `overwrite`, the logits' own array holds p after forward and dlogits after backward: it is the largest array of a
    training step, and most callers no longer need the logits. Raises TypeError, ValueError or IndexError for logits,
    targets, smoothing or pad that cannot be used; targets on a GPU are not compared with V.

    The wanted probabilities are p*, the predicted ones p = softmax(z). For the token in row n:

    Forward    p*_i = (1 - eps) 1[i = target] + eps / V      loss = -1/count sum_n sum_i p*_ni log p_ni
               log p_i = z_i - log sum_j exp(z_j)
    Jacobian   d(log p_i)/dz_j = 1[i = j] - p_j
    Chain      dz_nj = -1/count sum_i p*_ni (1[i = j] - p_nj) = (p_nj - p*_nj) / count       since p*_n sums to 1
    Remember   p, the targets and 1/count
    Check      each row of dz sums to 0; rows of padding are 0; the loss never falls below the entropy of p*
    """
    check_numbers("logits", logits)
    check_rate("smoothing", smoothing)
    V = logits.shape[-1]
    check_targets(targets, logits.shape[:-1], V, pad)
    pad = NOT_AN_ID if pad is None else check_integer("pad", pad)
    targets_n = targets.reshape(-1)
    loss, p, share = _cross_entropy(logits.reshape(-1, V), targets_n, smoothing, pad, overwrite)
    return loss, CrossEntropyCache(p, targets_n, share, smoothing, logits.shape, overwrite)


@fused
def _cross_entropy(logits, targets, smoothing, pad, overwrite):
    p = logits if overwrite else logits.copy()  # (N, V)
    counts = targets != pad
    share = counts.astype(logits.real.dtype)  # not after the division: a quotient of integers is float64
    share /= xp.maximum(share.sum(), 1)
    targets = targets * counts  # padding may lie outside the vocabulary
    losses = xp.empty(len(p), p.dtype)
    for rows in blocks(p):
        losses[rows] = softmax_and_losses(p[rows], targets[rows], smoothing)
    return xp.where(counts, losses, 0) @ share, p, share  # the loss of padding may be infinite: times 0 it is NaN


def cross_entropy_backward(dloss: Any, cache: CrossEntropyCache) -> xp.ndarray:
    """dlogits (..., V) from dloss, 1 for the loss itself; see `cross_entropy` for the derivation.

    dloss is a number or a 0-d array. Raises ValueError for a dloss with axes.
    """
    p, targets, share, smoothing, shape, overwrite = cache
    if hasattr(dloss, "shape"):
        check_shape("dloss", dloss, ())
    return _cross_entropy_backward(dloss, p, targets, share, smoothing, overwrite).reshape(shape)


@fused
def _cross_entropy_backward(dloss, p, targets, share, smoothing, overwrite):
    dz = p if overwrite else p.copy()
    targets = targets * (share > 0)  # as in forward
    for rows in blocks(dz):
        dz_rows = dz[rows]
        dz_rows -= smoothing / dz.shape[-1]
        dz_rows[xp.arange(len(dz_rows)), targets[rows]] -= 1.0 - smoothing  # one entry per row: no index occurs twice
        dz_rows *= (share[rows] * dloss)[:, None]
    return dz


def softmax_and_losses(z: xp.ndarray, targets: xp.ndarray, smoothing: float) -> xp.ndarray:
    """Turn the logits z (n, V) into softmax(z) in place, and return each row's loss (n,).

    -sum_i p*_i log p_i, with log p_i = z_i - log(total) and p* written out. Where the right word is nearly sure, total
    is 1 + others with small others, most of whose digits are rounded off. What is lost is added to the logarithm, whose
    slope is 1 / total: so a loss of 1e-9 has all its digits.
    """
    z -= row_max(z)
    at_targets = xp.arange(len(z)), targets
    right = z[at_targets]
    mean = row_mean(z)[:, 0] if smoothing else 0.0
    xp.exp(z, out=z)
    likely = z[at_targets]
    z[at_targets] = 0
    others = row_sum(z)[:, 0]
    z[at_targets] = likely
    total = likely + others
    z /= total[:, None]
    lost = others - (total - likely)
    return xp.log(total) + lost / total - (1.0 - smoothing) * right - smoothing * mean

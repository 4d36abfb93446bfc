"""Softmax, cross-entropy and label smoothing in one step, so that no logarithm of 0 is ever taken."""

from typing import NamedTuple

from minitransformer.backend import xp


class CrossEntropyCache(NamedTuple):
    """What `cross_entropy` remembers."""

    p: xp.ndarray  # (N, V), the predicted distribution
    targets: xp.ndarray  # (N,)
    share: xp.ndarray  # (N,), 1 / M for a token that counts and 0 for padding
    smoothing: float
    shape: tuple  # of the logits


def cross_entropy(logits, targets, smoothing=0.0, pad=0):
    """Mean cross-entropy in nats between smoothed targets and softmax(logits), over the tokens that are not padding.

    logits (..., V), targets (...) integers -> loss, a 0-d array. Label smoothing (paper section 5.4) as its source
    Szegedy et al. (2016) section 7 has it: the right token gets 1 - eps, and eps is spread evenly over all V tokens,
    the right one included. Tokens with target = pad take no part; M is the number of the others. With none, the loss
    is 0.

    Forward    q_v = (1 - eps) 1[v = target] + eps / V      loss = -1/M sum_n sum_v q_nv log p_nv,  p = softmax(z)
               log p_v = z_v - log sum_u exp(z_u)
    Jacobian   d(log p_u)/dz_v = 1[u = v] - p_v
    Chain      dz_nv = -1/M sum_u q_nu (1[u = v] - p_nv) = (p_nv - q_nv) / M      since q sums to 1; 0 for padding
    Remember   p, the targets and 1/M
    Check      each row of dz sums to 0; rows of padding are 0; the loss never falls below the entropy of q
    """
    V = logits.shape[-1]
    z, targets_n = logits.reshape(-1, V), targets.reshape(-1)  # (N, V), (N,)
    counts = targets_n != pad
    share = counts / xp.maximum(counts.sum(), 1)
    share = share.astype(logits.real.dtype)
    z = z - z.max(axis=-1, keepdims=True)
    right = z[xp.arange(len(z)), targets_n]  # (N,)
    mean_z = z.mean(axis=-1) if smoothing else 0.0
    p = xp.exp(z)
    total = p.sum(axis=-1)
    p /= total[:, None]
    # -sum_v q_v log p_v, with q written out and log p_v = z_v - log(total)
    losses = xp.log(total) - (1.0 - smoothing) * right - smoothing * mean_z
    return losses @ share, CrossEntropyCache(p, targets_n, share, smoothing, logits.shape)


def cross_entropy_backward(dloss, cache):
    """dlogits (..., V) from dloss, 1 for the loss itself; the derivation stands in `cross_entropy`."""
    p, targets, share, smoothing, shape = cache
    N, V = p.shape
    dz = p - smoothing / V
    dz[xp.arange(N), targets] -= 1.0 - smoothing  # one entry a row: no index comes twice
    dz *= (share * dloss)[:, None]
    return dz.reshape(shape)

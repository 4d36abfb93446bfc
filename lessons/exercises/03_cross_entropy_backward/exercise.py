"""Exercise 03: the backward pass of cross-entropy, with label smoothing and padding.

Difficulty 3 of 5, 25 minutes. See lesson 03, "What the loss says" and "A loss that cannot reach 0".

The forward is given: N rows of V logits, and N targets, some of which are padding. It takes the softmax p of each row
and its cross-entropy with the smoothed target, in which a share eps is spread over all V tokens. The loss is the mean
over the rows that count, which are all rows except padding. Write the backward pass, straight from p and the targets to
dz.

    minitransformer check 03_cross_entropy_backward
"""

import numpy as np


def cross_entropy(z, targets, eps, pad):
    """z (N, V), targets (N,), eps a share, pad the id of padding -> the loss, a number, and a cache for backward."""
    shifted = z - z.real.max(axis=-1, keepdims=True)
    log_p = shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))  # (N, V)
    right = log_p[np.arange(len(z)), targets]  # (N,)
    losses = -(1 - eps) * right - eps * log_p.mean(axis=-1)  # (N,)
    counts = targets != pad
    return (losses * counts).sum() / counts.sum(), (np.exp(log_p), targets, eps, pad)


def cross_entropy_backward(dloss, cache):
    """dloss, a number, which is the incoming gradient -> dz (N, V)."""
    p, targets, eps, pad = cache
    raise NotImplementedError("start with one row that counts: which p* does the loss want instead of p?")

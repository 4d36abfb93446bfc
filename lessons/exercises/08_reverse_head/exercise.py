"""Exercise 08: a head, set by hand, that looks into the mirror, with two features only.

Difficulty 4 of 5, 25 minutes. See lesson 08, "Two heads by hand".

The tokens are those of 08_shift_head: a one for the letter, then a one in n places for the position. Choose W_q and W_k
so that position t attends to its mirror image n - 1 - t: first to last, last to first. The lesson's head needs D = n
features for that. This one has D = 2, so there is no room for a one-hot vector: all n keys are points in a plane. Where
must they lie, so that for each of them there is a query that prefers it to all others? There is more than one way. It
passes if all weights are within 0.02 of 1 and 0.

    minitransformer check 08_reverse_head
"""

import math

import numpy as np


def tokens(word, letters):
    """word: n numbers from 0 to letters - 1 -> x (n, letters + n): one-hot letters, then one-hot positions."""
    return np.hstack([np.eye(letters)[word], np.eye(len(word))])


def attention_map(x, W_q, W_k):
    """x (n, C), W_q and W_k (C, D) -> weights (n, n): row t says how much position t attends to each position."""
    q, k = x @ W_q, x @ W_k
    s = q @ k.T / math.sqrt(q.shape[-1])
    p = np.exp(s - s.max(axis=-1, keepdims=True))
    return p / p.sum(axis=-1, keepdims=True)


def reverse_head(letters, n):
    """The weights for words of n letters -> W_q, W_k, both (letters + n, 2)."""
    raise NotImplementedError(
        "draw n points in a plane, the keys; a query is a direction: which point lies farthest in it?"
    )

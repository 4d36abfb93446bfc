"""Exercise 08: a head, set by hand, that reverses with only two features.

Difficulty 4 of 5, 25 minutes. See lesson 08, "Two heads by hand".

The tokens are those of 08_shift_head: one-hot letters, then one-hot positions. Choose W_q and W_k so that position t
attends to its mirror image T - 1 - t: the first to the last, the last to the first. The head in the lesson needs D = T
features for that. This one has D = 2, which leaves no room for one-hot vectors: all T keys are points in a plane. Where
must they be, so that for each of them there is a query that prefers it to all others? There is more than one way. You
pass if all weights are within 0.02 of 1 and 0.

    minitransformer check 08_reverse_head
"""

import math

import numpy as np


def tokens(word, letters):
    """word: T numbers from 0 to letters - 1 -> x (T, letters + T): one-hot letters, then one-hot positions."""
    return np.hstack([np.eye(letters)[word], np.eye(len(word))])


def attention_map(x, W_q, W_k):
    """x (T, C), W_q and W_k (C, D) -> weights (T, T): row t says how much position t attends to each position."""
    q, k = x @ W_q, x @ W_k
    s = q @ k.T / math.sqrt(q.shape[-1])
    p = np.exp(s - s.max(axis=-1, keepdims=True))
    return p / p.sum(axis=-1, keepdims=True)


def reverse_head(letters, T):
    """The weights for words of T letters -> W_q, W_k, both (letters + T, 2)."""
    raise NotImplementedError(
        "draw T points in a plane, the keys. A query is a direction: which point is the farthest in this direction?"
    )

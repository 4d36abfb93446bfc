"""Exercise 08: a head, set by hand, that looks at the token before.

Difficulty 2 of 5, 10 minutes. See lesson 08, "Two heads by hand".

A token has one feature for each letter, with a one at its own letter. After these it has one feature for each of the T
positions, with a one at its own position. Choose W_q and W_k so that each position attends to the one before it,
whatever the word is. Position 0 has no token before it, so it must attend to itself. There is no training here: you
choose every entry. You pass if all weights are within 0.02 of that.

    minitransformer check 08_shift_head
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


def shift_head(letters, T):
    """The weights for words of T letters -> W_q, W_k, both (letters + T, D), with a D of your choice."""
    raise NotImplementedError("decide for each position what it looks for (its query) and how it is found (its key)")

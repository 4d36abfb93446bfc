"""Exercise 08: a head, set by hand, that looks at the token before.

Difficulty 2 of 5, 10 minutes. See lesson 08, "Two heads by hand".

A token is a one in as many places as there are letters, for which letter it is, and behind them a one in n places, for
where it stands. Choose W_q and W_k so that each position attends to the one before it, whatever the word is. Position 0
has nobody before it: it is to attend to itself. No training, no loop over random numbers; every entry is your choice.
It passes if all weights are within 0.02 of that.

    minitransformer check 08_shift_head
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


def shift_head(letters, n):
    """The weights for words of n letters -> W_q, W_k, both (letters + n, D), with a D of your choice."""
    raise NotImplementedError("say for each position what it looks for (its query) and what it is found by (its key)")

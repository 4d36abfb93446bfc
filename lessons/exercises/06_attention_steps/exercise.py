"""Exercise 06: attention backward, one step at a time.

Difficulty 2 of 5, 25 minutes. See lesson 06.

The three steps of attention are given, for one head: the scores of queries and keys, the softmax, and the mean of the
values. Write the backward of each, from the last step to the first, as the gradient comes in. Each is checked alone.

    minitransformer check 06_attention_steps
"""

import math

import numpy as np


def scores(q, k):
    """q (B, T, D), k (B, S, D) -> s (B, T, S), and a cache for backward."""
    return q @ k.swapaxes(-1, -2) / math.sqrt(q.shape[-1]), (q, k)


def softmax(s):
    """s (B, T, S) -> weights p (B, T, S), each row of which sums to 1, and a cache for backward."""
    p = np.exp(s - s.real.max(axis=-1, keepdims=True))
    p /= p.sum(axis=-1, keepdims=True)
    return p, p


def weighted_mean(p, v):
    """p (B, T, S), v (B, S, E) -> o (B, T, E), and a cache for backward."""
    return p @ v, (p, v)


def weighted_mean_backward(do, cache):
    """do (B, T, E), which is dLoss/do -> dp (B, T, S) and dv (B, S, E)."""
    p, v = cache
    raise NotImplementedError("write dv first: which outputs o does one value reach, and by which weight?")


def softmax_backward(dp, cache):
    """dp (B, T, S) -> ds (B, T, S)."""
    p = cache
    raise NotImplementedError("first ask which weights change if one score of a row is raised a little")


def scores_backward(ds, cache):
    """ds (B, T, S) -> dq (B, T, D) and dk (B, S, D)."""
    q, k = cache
    raise NotImplementedError("write dq first: the scores of one query depend on it through all keys")

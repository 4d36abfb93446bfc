"""Exercise 06: attention backward, one step at a time.

Difficulty 2 of 5, 25 minutes. See lesson 06, "The price of a look" and the two sections after it.

The three steps of attention are given, for one head: the scores of queries and keys, the softmax, and the mean of the
values. Write the backward pass of each, from the last step to the first, because this is how the gradient comes in.
Each function is checked alone.

    minitransformer check 06_attention_steps
"""

import math

import numpy as np


def scores(q, k):
    """q (B, T, D), k (B, S, D) -> s (B, T, S), and a cache for backward."""
    return q @ k.swapaxes(-1, -2) / math.sqrt(q.shape[-1]), (q, k)


def softmax(s):
    """s (B, T, S) -> weights p (B, T, S), whose rows sum to 1, and a cache for backward."""
    p = np.exp(s - s.real.max(axis=-1, keepdims=True))
    p /= p.sum(axis=-1, keepdims=True)
    return p, p


def weighted_mean(p, v):
    """p (B, T, S), v (B, S, width) -> o (B, T, width), and a cache for backward."""
    return p @ v, (p, v)


def weighted_mean_backward(do, cache):
    """do (B, T, width), which is dLoss/do -> dp (B, T, S) and dv (B, S, width)."""
    p, v = cache
    raise NotImplementedError("write dv first: which rows of o does one value reach, and with which weights?")


def softmax_backward(dp, cache):
    """dp (B, T, S) -> ds (B, T, S)."""
    p = cache
    raise NotImplementedError("first ask which weights change if you raise one score of a row a little")


def scores_backward(ds, cache):
    """ds (B, T, S) -> dq (B, T, D) and dk (B, S, D)."""
    q, k = cache
    raise NotImplementedError("write dq first: a query reaches all scores of its row, each through another key")

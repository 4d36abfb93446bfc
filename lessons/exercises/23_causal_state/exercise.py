"""Exercise 23: the state of linear attention, and the way back.

Difficulty 3 of 5, 25 minutes. See lesson 23, "Move the brackets" and "The sum from the other end".

Without a softmax, a token's answer is its query times a matrix that all tokens so far have added to: its state. Write
the states first. Then write the backward pass of the answers. The forward is given with all T² scores at once, so that
it shows no states; you may write the backward pass in either way.

    minitransformer check 23_causal_state
"""

import numpy as np


def causal_states(k, v):
    """k (B, T, D), v (B, T, width) -> the state after each token (B, T, D, width): the sum of all k_jᵀ v_j so far."""
    raise NotImplementedError("write the state after the first token, then what the second one adds to it")


def attend(q, k, v):
    """q and k (B, T, D), v (B, T, width) -> o (B, T, width), and a cache. Token t sees the tokens up to t."""
    return np.tril(q @ k.swapaxes(-1, -2)) @ v, (q, k, v)


def attend_backward(do, cache):
    """do (B, T, width), which is dLoss/do -> dq (B, T, D), dk (B, T, D) and dv (B, T, width)."""
    q, k, v = cache
    raise NotImplementedError("write dq first: which state has the query of token t met?")

"""Exercise 20: a key, and a head, taken out.

Difficulty 2 of 5, 20 minutes. See lesson 20, "A key taken out" and "A head taken out".

What would a row get if it could not see key j? And what would a layer return without one of its heads? Write both,
without a loop if you like. A head is taken out in two ways: its output becomes 0, or its mean over all tokens of all
sequences.

    minitransformer check 20_knock_out
"""

import math

import numpy as np


def softmax(s):
    """s (..., S) -> weights (..., S), each row positive with sum 1."""
    p = np.exp(s - s.max(axis=-1, keepdims=True))
    return p / p.sum(axis=-1, keepdims=True)


def without_key(s, v, j):
    """scores s (T, S), values v (S, D), the number j of a key -> o (T, D), as if no row could see key j."""
    raise NotImplementedError("what must the score of a key be so that its weight is 0 and the others sum to 1?")


def without_head(o, W_o, gone):
    """o (B, H, T, D), W_o (H D, C), the number of a head -> two outputs (B, T, C) of the layer: y_zero and y_mean.

    Head i reads the rows i D to (i + 1) D of W_o, and y is the sum over the heads. There is no bias.
    """
    raise NotImplementedError("take a copy of o first, in which the head is 0, or its mean: how many numbers is that?")

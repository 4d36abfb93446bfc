"""Exercise 05: scaled dot-product attention.

Difficulty 2 of 5, 20 minutes. See lesson 05, parts 1 and 2.

Queries, keys and values are given, for one head. Write the forward pass: the scores with their scale, the softmax,
and the mean of the values. Some of the scores that your function will meet are large, a thousand and more, and some are
as far below 0; the weights must come out right all the same.

    minitransformer check 05_attention
"""

import math

import numpy as np


def attention(q, k, v):
    """q (B, T, D), k (B, S, D), v (B, S, E) -> the answers y (B, T, E) and the weights p (B, T, S).

    B sequences, T queries and S keys and values in each; a row of p holds the weights that one query gives to the S
    values, and sums to 1.
    """
    raise NotImplementedError(
        "write the scores first: each query with each key, (B, T, S). What is their typical size?"
    )

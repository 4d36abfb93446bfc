"""Exercise 05: scaled dot-product attention.

Difficulty 2 of 5, 20 minutes. See lesson 05, "One row asks four letters" and "How large is a dot product?".

Queries, keys and values are given, for one head. Write the forward pass: the scores with their scale, the softmax, and
the mean of the values. Your function will also meet scores of a thousand and more, and scores as far below 0. Their
weights must be right, too.

    minitransformer check 05_attention
"""

import math

import numpy as np


def attention(q, k, v):
    """q (B, T, D), k (B, S, D), v (B, S, width) -> the answers o (B, T, width) and the weights p (B, T, S).

    There are B sequences, each with T queries, S keys and S values. The values have a width of their own. A row of p
    holds the weights that one query gives to the S values, and sums to 1.
    """
    raise NotImplementedError("write the scores first: each query with each key, (B, T, S). How large are they?")

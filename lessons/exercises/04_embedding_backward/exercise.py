"""Exercise 04: the backward pass of a lookup.

Difficulty 2 of 5, 15 minutes. See lesson 04, "The way back: every use adds".

The forward is given: each token's row of the table E, times a number s. Write its backward: the gradient of the whole
table. Some tokens come more than once, and some never.

    minitransformer check 04_embedding_backward
"""

import numpy as np


def embed(ids, E, s):
    """ids (B, T), integers from 0 to V - 1, E (V, C), s a number -> x (B, T, C), and a cache for backward."""
    return s * E[ids], (ids, len(E), s)


def embed_backward(dx, cache):
    """dx (B, T, C), which is dLoss/dx -> dE (V, C), a new array."""
    ids, V, s = cache
    raise NotImplementedError("begin with a table of zeros. Then: which places of dx belong to row v of it?")

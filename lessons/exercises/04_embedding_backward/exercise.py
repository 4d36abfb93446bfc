"""Exercise 04: the backward pass of a lookup.

Difficulty 2 of 5, 15 minutes. See lesson 04, "The way back: every use adds".

The forward is given: it looks up the row of E for each token, and multiplies it by a number, `scale` (√C in the model).
Write the backward pass, which is the gradient of the whole table. Some tokens come more than once, and some never.

    minitransformer check 04_embedding_backward
"""

import numpy as np


def embed(ids, E, scale):
    """ids (B, T), integers from 0 to V - 1, E (V, C), scale a number -> x (B, T, C), and a cache for backward."""
    return scale * E[ids], (ids, len(E), scale)


def embed_backward(dx, cache):
    """dx (B, T, C), which is dLoss/dx -> dE (V, C), a new array."""
    ids, V, scale = cache
    raise NotImplementedError("start with a table of zeros. Then ask: which rows of dx belong to row w of the table?")

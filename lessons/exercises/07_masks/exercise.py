"""Exercise 07: who may look at whom.

Difficulty 1 of 5, 15 minutes. See lesson 07, "Two words in one batch".

A mask is an array of booleans that fits the scores (B, H, T, S): B sequences, H heads, T queries, S keys. True means
"may look". Write the causal mask, the padding mask, and the mask of a target, which must satisfy both. An axis along
which nothing changes has the length 1.

    minitransformer check 07_masks
"""

import numpy as np


def causal_mask(length):
    """The number of positions T -> (1, 1, T, T): a position may look at itself and at all positions before it."""
    raise NotImplementedError("draw it for 4 positions first: a row for each query, a column for each key")


def padding_mask(ids, pad=0):
    """ids (B, S), and the id of padding -> (B, 1, 1, S): nobody may look at padding."""
    raise NotImplementedError("compare ids with pad first. Then ask which of the four axes is the axis of the keys")


def target_mask(ids, pad=0):
    """ids (B, T), and the id of padding -> (B, 1, T, T): only looks that both masks allow."""
    raise NotImplementedError(
        "write the other two first. For one query and one key, when do both masks allow the look?"
    )

"""Exercise 08: features to heads, and back.

Difficulty 2 of 5, 15 minutes. See lesson 08.

H heads share the C = H·D features of a token: head h owns the features hD ... hD + D-1. Write the two functions that
give the heads an axis of their own and take it away again, and the backward of each. Many maps fit the shapes, and only
one of them gives every head a part of the features of ALL tokens.

    minitransformer check 08_heads
"""

import numpy as np


def split_heads(x, H):
    """x (B, T, C), and H, which divides C -> heads (B, H, T, D), with D = C / H."""
    B, T, C = x.shape
    raise NotImplementedError(
        "write down which entry of x becomes heads[b, h, t, d]; then look for a way to move it there"
    )


def merge_heads(heads):
    """heads (B, H, T, D) -> x (B, T, C), with C = H·D: the heads side by side, which the paper calls Concat."""
    B, H, T, D = heads.shape
    raise NotImplementedError("merge_heads(split_heads(x, H)) is x: undo the steps of split_heads, the last one first")


def split_heads_backward(dheads):
    """dheads (B, H, T, D), which is dLoss/dheads for heads = split_heads(x, H) -> dx (B, T, C)."""
    B, H, T, D = dheads.shape
    raise NotImplementedError("each entry of x went to one place of heads: where does its gradient lie in dheads?")


def merge_heads_backward(dx, H):
    """dx (B, T, C), which is dLoss/dx for x = merge_heads(heads), and H -> dheads (B, H, T, D)."""
    B, T, C = dx.shape
    raise NotImplementedError("each entry of heads went to one place of x: where does its gradient lie in dx?")

"""Exercise 08: features to heads, and back.

Difficulty 2 of 5, 15 minutes. See lesson 08, "Small products side by side" and "Backward: every number goes home".

H heads share the C = H·D features of a token. The first head owns the first D features, the next head the next D, and
so on. Write the two functions that give the heads an axis of their own and take it away again, and the backward of
each. Many answers have the right shapes, but only one gives every head a part of the features of ALL tokens.

    minitransformer check 08_heads
"""

import numpy as np


def split_heads(x, H):
    """x (B, T, C), and H, which divides C -> heads (B, H, T, D), with D = C / H."""
    B, T, C = x.shape
    raise NotImplementedError(
        "first find out which feature c of x becomes feature d of a head. Then look for a way to move it there"
    )


def merge_heads(heads):
    """heads (B, H, T, D) -> x (B, T, C), with C = H·D: the heads side by side, which the paper calls Concat."""
    B, H, T, D = heads.shape
    raise NotImplementedError("merge_heads(split_heads(x, H)) is x: undo the steps of split_heads, the last one first")


def split_heads_backward(dheads):
    """dheads (B, H, T, D), which is dLoss/dheads for heads = split_heads(x, H) -> dx (B, T, C)."""
    B, H, T, D = dheads.shape
    raise NotImplementedError("each entry of x went to one place in heads. Where in dheads is its gradient?")


def merge_heads_backward(dx, H):
    """dx (B, T, C), which is dLoss/dx for x = merge_heads(heads), and H -> dheads (B, H, T, D)."""
    B, T, C = dx.shape
    raise NotImplementedError("each entry of heads went to one place in x. Where in dx is its gradient?")

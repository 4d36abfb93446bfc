"""Exercise 23: how far a stack of windows sees.

Difficulty 2 of 5, 15 minutes. See lesson 23, "A window instead".

In a layer with a window of 4, a token sees itself and the 3 tokens before it, as far as there are any. With a window
of 1 it sees itself alone. In a layer with full attention, whose window is written as 0, it sees all tokens up to
itself. A stack of layers sees further than each of them: what a token reads in one layer has seen something in the
layer below.

    minitransformer check 23_window_reach
"""

import numpy as np


def first_seen(T, windows):
    """T, and the windows of all layers, from the first layer to the last, such as [4, 4, 0] -> T whole numbers.

    Number t is the position of the earliest token that the output at position t depends on. Return an array or a list.
    """
    raise NotImplementedError("begin with a single layer: what is the earliest token that position t sees?")


def first_seen_each(T, stacks):
    """Given: apply your `first_seen` to one stack of layers after another -> a list for each. The checker calls it."""
    return tuple([int(place) for place in first_seen(T, list(windows))] for windows in stacks)

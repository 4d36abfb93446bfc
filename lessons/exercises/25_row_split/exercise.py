"""Exercise 25: a matrix that is cut by rows.

Difficulty 3 of 5, 25 minutes. See lesson 25, "A layer on two machines" and "Turn the arrows round".

The linear map y = x W + b does not fit on one machine. Each machine has some rows of W, the features of x that belong
to them, and all of b. In the end each machine has all of y, so they must add up something: `all_reduce`, which is
given, does it. On the way back each machine has all of dy. It needs the gradients of what it holds, and no more.

    minitransformer check 25_row_split
"""

import numpy as np


def all_reduce(arrays):
    """Given: one array of each machine, all of one shape -> a list with their sum, once for each machine."""
    total = arrays[0]
    for array in arrays[1:]:
        total = total + array
    return [total + 0 for _ in arrays]


def row_split(x, W, b):
    """x and W, lists with the features (N, F) and the rows (F, C) of each machine, and b (C,).

    -> a list of what each machine has in the end: y (N, C), the same on all.
    """
    raise NotImplementedError("write what one machine can compute without the others, a part of y")


def row_split_backward(dy, x, W):
    """dy (N, C), which all machines have, and the lists x and W of `row_split`.

    -> three lists, with the dx (N, F), dW (F, C) and db (C,) of each machine.
    """
    raise NotImplementedError("forward there was a sum. What is its transpose: does anything have to be added up here?")

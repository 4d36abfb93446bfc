"""Exercise 25: the gradient of the whole batch, on every machine.

Difficulty 1 of 5, 15 minutes. See lesson 25, "A mean of means" and "Everybody gets the sum".

Several machines share a batch. Each knows its own gradient, of the mean loss over its own tokens, and how many tokens
it has. What they can do together is given: `all_reduce` adds up one array of each machine, and all get the sum.

    minitransformer check 25_all_reduce
"""

import numpy as np


def all_reduce(arrays):
    """Given: one array of each machine, all of one shape -> a list with their sum, once for each machine."""
    total = arrays[0]
    for array in arrays[1:]:
        total = total + array
    return [total + 0 for _ in arrays]


def share_gradient(gradients, tokens):
    """gradients and tokens, lists with the gradient (C, F) and the number of tokens of each machine.

    -> a list of what each machine has in the end: the gradient (C, F) of the mean loss over all tokens of the batch.
    One of the machines may have no token at all; its gradient is 0 then.
    """
    raise NotImplementedError("first ask what a machine's gradient must be multiplied by, before anything is added")

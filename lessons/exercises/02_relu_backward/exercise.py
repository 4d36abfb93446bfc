"""Exercise 02: the backward pass of ReLU.

Difficulty 1 of 5, 5 minutes. See lesson 02, "Follow each number to the loss".

The forward is given: y = max(0, x), entry by entry. For the backward pass it keeps y, but not x. Write the backward
pass.

    minitransformer check 02_relu_backward
"""

import numpy as np


def relu(x):
    """x, of any shape -> y of the same shape, and y again as the cache for backward."""
    y = np.where(x.real > 0, x, 0.0)
    return y, y


def relu_backward(dy, y):
    """dy, which is dLoss/dy, and y from the forward -> dx. All have the same shape."""
    raise NotImplementedError("look at one entry: how much does y move when x moves, where y is 0 and where it is not?")

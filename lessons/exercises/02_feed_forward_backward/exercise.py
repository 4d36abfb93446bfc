"""Exercise 02: the backward pass of the feed-forward network.

Difficulty 3 of 5, 25 minutes. See lesson 02, "Follow each number to the loss".

The forward is given: a linear layer from C to F features, ReLU, and a linear layer from F back to C, for each token
alone. Write its backward, in three steps that read the forward from the end to the beginning. What you wrote for
linear_backward and relu_backward may be copied into this file and called.

    minitransformer check 02_feed_forward_backward
"""

import numpy as np


def feed_forward(x, W1, b1, W2, b2):
    """x (B, T, C), W1 (C, F), b1 (F,), W2 (F, C), b2 (C,) -> y (B, T, C), and a cache for backward."""
    a = x @ W1 + b1  # (B, T, F)
    r = np.where(a.real > 0, a, 0.0)  # (B, T, F)
    return r @ W2 + b2, (x, W1, a, r, W2)


def feed_forward_backward(dy, cache):
    """dy (B, T, C), which is dLoss/dy -> dx, dW1, db1, dW2, db2, of the shapes of x, W1, b1, W2, b2."""
    x, W1, a, r, W2 = cache
    raise NotImplementedError("begin at the end: dr, dW2 and db2 come from dy. Then da from dr, then the first layer")

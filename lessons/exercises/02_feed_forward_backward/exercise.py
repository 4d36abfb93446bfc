"""Exercise 02: the backward pass of the feed-forward network.

Difficulty 3 of 5, 25 minutes. See lesson 02, "Follow each number to the loss".

The forward is given: a linear layer from C to F features, ReLU, and a linear layer back to C features. It treats each
token alone. Write the backward pass in three steps, from the end of the forward to its beginning. You may copy your
linear_backward and relu_backward into this file and call them.

    minitransformer check 02_feed_forward_backward
"""

import numpy as np


def feed_forward(x, W_1, b_1, W_2, b_2):
    """x (B, T, C), W_1 (C, F), b_1 (F,), W_2 (F, C), b_2 (C,) -> y (B, T, C), and a cache for backward."""
    a = x @ W_1 + b_1  # (B, T, F)
    r = np.where(a.real > 0, a, 0.0)  # (B, T, F)
    return r @ W_2 + b_2, (x, W_1, a, r, W_2)


def feed_forward_backward(dy, cache):
    """dy (B, T, C), which is dLoss/dy -> dx, dW_1, db_1, dW_2, db_2, with the shapes of x, W_1, b_1, W_2, b_2."""
    x, W_1, a, r, W_2 = cache
    raise NotImplementedError(
        "start at the end: dr, dW_2 and db_2 come from dy. Then da comes from dr, and the rest from da"
    )

"""Exercise 13: one step of Adam.

Difficulty 2 of 5, 20 minutes. See lesson 13.

Nothing is given but the paper's numbers (section 5.3). Write the step that moves the weights θ by the gradient g, with
a running mean m of the gradients and a running mean v of their squares. m and v begin as zeros, and t counts from 1.

    minitransformer check 13_adam
"""

import math

import numpy as np

BETA1, BETA2, EPS = 0.9, 0.98, 1e-9


def adam_step(theta, g, m, v, t, lr):
    """Step number t = 1, 2, ... with the learning rate lr -> the new theta, m and v.

    theta, g, m and v (I, O) are weights, their gradient, and the two means after step t - 1. Return new arrays: what
    came in is still needed by others.
    """
    raise NotImplementedError(
        "write the new m and v first. Then ask how much of them is still the zero that they began with"
    )

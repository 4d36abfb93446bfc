"""Exercise 13: one step of Adam.

Difficulty 2 of 5, 20 minutes. See lesson 13, "Divide the gradient by its own size".

You get nothing but the paper's numbers (section 5.3). Write the step that moves the weights θ by the gradient g, with a
running mean m₁ of the gradients and a running mean m₂ of their squares. Both means begin at 0, and `step` counts from
1. (Most texts call the means m and v.)

    minitransformer check 13_adam
"""

import math

import numpy as np

BETA1, BETA2, EPS = 0.9, 0.98, 1e-9


def adam_step(theta, g, m1, m2, step, lr):
    """Step number `step` = 1, 2, ... with the learning rate lr -> the new theta, m1 and m2.

    theta, g, m1 and m2 (C, F) are weights, their gradient, and the two means after the step before. Return new arrays:
    the old ones are still needed.
    """
    raise NotImplementedError("write the new m1 and m2 first. How much of them is still the 0 that they began with?")

"""Exercise 24: the limit of a step, and what happens beyond it.

Difficulty 2 of 5, 20 minutes. See lesson 24, "A valley with one number" and "826 directions".

The loss is ½ θ·(J θ) with a symmetric matrix J, so its gradient is J θ, and plain gradient descent is
θ ← θ − lr J θ. Along an eigenvector of J that is a valley, or a ridge. Write the limit of the learning rate, and
where descent is after some steps.

    minitransformer check 24_step_limit
"""

import math

import numpy as np


def step_limit(J):
    """J (B, C, C), B symmetric matrices -> limit (B,): for each, the rate below which descent arrives at θ = 0.

    It must arrive from every beginning. If it does with no rate, the limit is 0. (No eigenvalue is exactly 0.)
    """
    raise NotImplementedError("np.linalg.eigvalsh(J) gives the eigenvalues of each matrix, (B, C), the smallest first")


def descend(theta, J, lr, steps):
    """theta (B, C), J (B, C, C), one lr for all, and a number of steps >= 0 -> where each theta is then, (B, C)."""
    raise NotImplementedError("what is the gradient at theta (B, C)? Each matrix multiplies its own theta")

"""Exercise 01: two judges of a derivative.

Difficulty 1 of 5, 20 minutes. See lesson 01.

Given is any function f that takes an array and returns one number. Write two ways to find its gradient by trying:
the two-sided (central) difference, and the complex step. Neither may know anything of f but its values.

    minitransformer check 01_derivatives
"""

import numpy as np


def central_difference(f, x, h=6e-6):
    """f: array -> number, x (M, N), step h -> the gradient of f at x, (M, N): how f changes with each entry of x."""
    gradient = np.zeros(x.shape)
    raise NotImplementedError(
        "first move one entry of x alone: on a copy, by h up and by h down. np.ndindex(*x.shape) goes over all entries"
    )


def complex_step(f, x):
    """f: array -> number, complex for a complex array; x (M, N) real -> the gradient of f at x, (M, N) and real."""
    gradient = np.zeros(x.shape)
    raise NotImplementedError(
        "first make a complex copy of x, x.astype(complex), and add a tiny imaginary step to one entry of it"
    )

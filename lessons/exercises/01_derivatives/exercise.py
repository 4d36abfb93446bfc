"""Exercise 01: two ways to find a derivative by trying.

Difficulty 1 of 5, 20 minutes. See lesson 01, "What a step leaves out" and "A step to the side".

You get a function f that takes an array and returns one number. You cannot look inside it, but you can call it. Write
two ways to find its gradient: the two-sided (or central) difference, and the complex step.

    minitransformer check 01_derivatives
"""

import numpy as np


def central_difference(f, x, h=6e-6):
    """f: array -> number, x (T, C), step h -> the gradient of f at x, (T, C): how f changes with each entry of x."""
    gradient = np.zeros(x.shape)
    raise NotImplementedError(
        "move one entry of a copy of x, first up by h, then down by h. np.ndindex(*x.shape) goes over all entries"
    )


def complex_step(f, x):
    """f: array -> number, complex for a complex array; x (T, C) real -> the gradient of f at x, (T, C) and real."""
    gradient = np.zeros(x.shape)
    raise NotImplementedError(
        "make a complex copy of x, x.astype(complex), and add a tiny imaginary step to one of its entries"
    )

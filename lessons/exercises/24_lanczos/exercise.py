"""Exercise 24: the method of Lanczos.

Difficulty 3 of 5, 30 minutes. See lesson 24, "Lanczos, and ghosts".

You get a function that multiplies a vector by the Hessian J, and a direction to begin with. Collect directions of
length 1: the first is the beginning itself. Multiply the newest one by J, take out of the product what lies along the
directions that you have, and scale what is left to length 1: that is the next one. In these directions J is a small
matrix, which is all that `eigenvalues` below needs.

Here the products are noisy, as in low precision: J is symmetric up to a thousandth only. What rounding errors do to
float64 after fifteen steps, this noise does in a few.

    minitransformer check 24_lanczos
"""

import math

import numpy as np


def lanczos(product, start, steps):
    """product(u) = J u for a u (size,); start (size,) -> diagonal (steps,), beside (steps,) and basis (steps, size).

    basis: the directions, one in each row. diagonal: u·(J u) of each. beside: the length of what was left of each
    product. The last direction is multiplied, too; what is left of its product is no direction any more.
    """
    basis = np.zeros((steps, len(start)), start.dtype)
    raise NotImplementedError("fill basis row by row. What makes a direction of length 1 of `start`?")


def eigenvalues(diagonal, beside):
    """Given: the eigenvalues of the small matrix, the smallest first. At both ends they are soon those of J."""
    return np.linalg.eigvalsh(np.diag(diagonal) + np.diag(beside[:-1], 1) + np.diag(beside[:-1], -1))

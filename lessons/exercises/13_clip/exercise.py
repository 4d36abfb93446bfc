"""Exercise 13: clipping the gradient.

Difficulty 1 of 5, 10 minutes. See lesson 13, "Clipping".

All gradients of a model, taken together, are one long vector with a direction and a length |g|. If it is longer than
c, make it c long. The direction stays, and so does a vector that is short enough.

    minitransformer check 13_clip
"""

import math

import numpy as np


def clip(gradients, c):
    """gradients, a list of arrays of any shapes, and c > 0 -> a list of new arrays of the same shapes.

    A gradient that is 0 everywhere stays so. Whether you divide by |g| or by |g| + 1e-6 is all the same here.
    """
    raise NotImplementedError("write |g| first: one number, for all the arrays together")


def clip_each(steps, c):
    """Given: the gradients of one step after the other through your `clip` -> all of the arrays, in order.

    The checker calls this, with a step whose gradient is too long, a step where it is not, and one where it is 0.
    """
    return tuple(array for gradients in steps for array in clip(gradients, c))

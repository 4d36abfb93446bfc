"""Exercise 13: clipping the gradient.

Difficulty 1 of 5, 10 minutes. See lesson 13, "Clipping".

Taken together, all gradients of a model are one long vector with a direction and a length |g|. If it is longer than a
limit, make it exactly as long as the limit. The direction stays. A vector that is short enough stays as it is.

    minitransformer check 13_clip
"""

import math

import numpy as np


def clip(gradients, limit):
    """gradients, a list of arrays of any shapes, and limit > 0 -> a list of new arrays of the same shapes.

    A gradient that is 0 everywhere stays 0. You may divide by |g| or by |g| + 1e-6: both are right here.
    """
    raise NotImplementedError("write |g| first: one number for all arrays together")


def clip_each(steps, limit):
    """Given: apply your `clip` to the gradients of one step after another -> all of their arrays, in order.

    The checker calls it with three steps: a gradient that is too long, one that is short enough, and one that is 0.
    """
    return tuple(array for gradients in steps for array in clip(gradients, limit))

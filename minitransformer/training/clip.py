"""Clipping the gradient."""

import math

from minitransformer.backend import xp


def clip_grad_norm(parameters, max_norm):
    """Scale all gradients by one factor, so that their norm taken together is at most `max_norm`; return the norm.

    The direction stays. Not in the paper's text. Returns the norm before clipping, a 0-d array; nothing here waits
    for a GPU to have computed it.
    """
    parameters = list(parameters)
    squares = [xp.vdot(parameter.grad, parameter.grad) for parameter in parameters]
    norm = xp.sqrt(sum(squares[1:], squares[0]))
    if math.isinf(max_norm):
        return norm
    factor = xp.minimum(max_norm / (norm + 1e-6), 1.0)
    for parameter in parameters:
        parameter.grad *= factor
    return norm

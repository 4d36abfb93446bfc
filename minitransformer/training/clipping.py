"""Clipping the norm of the gradient, which the paper does not mention."""

from collections.abc import Iterable, Sequence
from typing import Any

from minitransformer.backend import backend_name, xp
from minitransformer.core import Parameter
from minitransformer.training.flat import ONE_THREAD

BLOCK = 2**16  # gradients summed at a time, so that rounding errors stay small in float32


def grad_norm(parameters: Sequence[Parameter], team: Any = ONE_THREAD) -> xp.ndarray:
    """The norm of all gradients taken together as one vector -> a 0-d array."""
    squares = squares_of_blocks([parameter.grad.reshape(-1) for parameter in parameters], team)
    return xp.sqrt(sum(squares[1:], start=squares[0]))  # not from 0.0, which NumPy 1 would take for a float64


def squares_of_blocks(grads: Sequence[xp.ndarray], team: Any = ONE_THREAD) -> list[xp.ndarray]:
    """The sums of squares of the vectors `grads`, one for each BLOCK of numbers -> 0-d arrays."""
    step = BLOCK if backend_name() == "numpy" else max(1, *(grad.size for grad in grads))  # a GPU sums in a tree anyway
    blocks = [grad[start : start + step] for grad in grads for start in range(0, grad.size, step)]
    return team.map(xp.vdot, blocks, blocks)


def clip_factor(norm: xp.ndarray, max_norm: float) -> xp.ndarray:
    """The factor, at most 1, that reduces gradients of norm `norm` to norm `max_norm` -> a 0-d array; for nan, 1."""
    return xp.fmin(max_norm / (norm + 1e-6), 1.0)


def clip_grad_norm(parameters: Iterable[Parameter], max_norm: float) -> xp.ndarray:
    """Scale all gradients by one factor, so that their norm taken together is at most `max_norm` -> the norm before.

    The direction stays the same; an infinite `max_norm` changes nothing, and neither does a norm that is nan, so that
    `check_finite` can say which gradients are. The norm is a 0-d array, so nothing waits for a GPU.
    """
    parameters = list(parameters)
    norm = grad_norm(parameters)
    factor = clip_factor(norm, max_norm)
    for parameter in parameters:
        parameter.grad *= factor
    return norm

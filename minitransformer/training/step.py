"""The training step, as it would stand on a whiteboard. Everything else in this folder is about how to do it faster,
with less memory, or in many threads and processes at a time, and none of it changes what is computed here."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple, Protocol

import numpy as np

from minitransformer.backend import xp
from minitransformer.layers.losses import accuracy_of, padding_of, with_weight
from minitransformer.training.clipping import clip_factor, grad_norm
from minitransformer.training.finite import SILENT, check_finite


class Measured(NamedTuple):
    """What was measured on the way to a gradient."""

    loss: Any  # 0-d
    accuracy: Any = None  # 0-d, the share of targets whose logit is the largest, or None if it was not asked for


class Gradients(Protocol):
    """The signature of everything that computes the gradient of a batch.

    `PlainGradients` is for a whole batch, forward and backward. The files of parallel/ cut the batch, and call another
    `gradients` for each part. So they can be put around each other in any order, and each compared with the plain one.
    """

    def __call__(self, batch: Any, weight: float = 1.0, measure: bool = False) -> Measured:
        """Add `weight` times the gradient of the batch's loss; measure the accuracy only if `measure`."""


class PlainGradients:
    """Forward, loss and backward of any model and any loss. `rng` draws the dropout masks."""

    def __init__(self, model: Any, loss_fn: Any, rng: np.random.Generator | None = None) -> None:
        self.model, self.loss_fn, self.rng = model, loss_fn, rng

    def __call__(self, batch: Any, weight: float = 1.0, measure: bool = False) -> Measured:
        """See `Gradients`."""
        y, cache = self.model.forward(*batch.inputs, rng=self.rng)
        accuracy = None
        if measure:  # before the loss, which may overwrite y
            accuracy = accuracy_of(y, batch.targets, padding_of(self.loss_fn, self.model))
        loss, loss_cache = self.loss_fn.forward(y, batch.targets)
        self.model.backward(self.loss_fn.backward(weight, loss_cache), with_weight(cache, weight))
        return Measured(loss, accuracy)


def training_step(
    model: Any,
    loss_fn: Any,
    optimizer: Any,
    batch: Any,
    rng: np.random.Generator | None = None,
    max_norm: float = 1.0,
) -> tuple[xp.ndarray, xp.ndarray]:
    """Forward, loss, backward, clip, and one step of the optimizer -> the loss, and the norm before clipping.

    It works with every model and every loss that follow the protocol of `core.Layer`, and with every batch that has
    `inputs` for the model and `targets` for the loss. `rng` draws the dropout masks; None means no dropout. Raises
    NotFiniteError for a loss or gradient that is nan or infinite, before a weight moves.
    """
    gradients = PlainGradients(model, loss_fn, rng)
    check = partial(check_finite, model=model)
    measured, norm = step_with(gradients, optimizer, batch, max_norm, check=check)
    return measured.loss, norm


@np.errstate(**SILENT)  # what `check` finds explains more than a warning
def step_with(
    gradients: Gradients,
    optimizer: Any,
    batch: Any,
    max_norm: float = 1.0,
    measure: bool = False,
    check: Callable[[Any, Any], None] = check_finite,
    norm_of: Callable[[Any], xp.ndarray] = grad_norm,
) -> tuple[Measured, xp.ndarray]:
    """The step that every training repeats, with any way to add the gradient of a batch -> what it measured, the norm.

    check(loss, norm) is called before the weights move, and may raise; on a GPU the default waits. The gradient is
    scaled inside Adam, which saves a pass over it.
    """
    optimizer.zero_grad()
    measured = gradients(batch, measure=measure)
    norm = norm_of(optimizer.parameters)
    check(measured.loss, norm)
    optimizer.step(scale=clip_factor(norm, max_norm))
    return measured, norm

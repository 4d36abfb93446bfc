"""One signature for everything that computes the gradient of a batch:

    gradients(batch, weight=1.0, measure=False) -> Measured(loss, accuracy)

adds `weight` times the gradient of the batch's loss to the gradients of the parameters. Here it is for a whole batch,
forward and backward; the files of parallel/ cut the batch, and call another `gradients` for each part. So they can be
put around each other in any order, and each can be compared with the plain one.
"""

from typing import Any, NamedTuple, Protocol

import numpy as np

from minitransformer.backend import to_device, xp
from minitransformer.data.task import TrainingBatch
from minitransformer.layers.losses import counted_targets, padding_of


class Measured(NamedTuple):
    """What was measured on the way to a gradient."""

    loss: Any  # 0-d
    accuracy: Any = None  # 0-d, the share of targets whose logit is the largest, or None if it was not asked for


class Gradients(Protocol):
    """The signature above."""

    def __call__(self, batch: TrainingBatch, weight: float = 1.0, measure: bool = False) -> Measured:
        """Add `weight` times the gradient of the batch's loss; measure the accuracy only if `measure`."""


class PlainGradients:
    """Forward, loss and backward of any model and any loss. `rng` draws the dropout masks."""

    def __init__(self, model: Any, loss_fn: Any, rng: np.random.Generator | None = None) -> None:
        self.model, self.loss_fn, self.rng = model, loss_fn, rng

    def __call__(self, batch: TrainingBatch, weight: float = 1.0, measure: bool = False) -> Measured:
        """See `Gradients`."""
        y, cache = self.model.forward(*batch.inputs, rng=self.rng)
        accuracy = None
        if measure:  # before the loss, which may overwrite y
            accuracy = accuracy_of(y, batch.targets, padding_of(self.loss_fn, self.model))
        loss, loss_cache = self.loss_fn.forward(y, batch.targets)
        self.model.backward(self.loss_fn.backward(weight, loss_cache), weighed(cache, weight))
        return Measured(loss, accuracy)


def weighed(cache: Any, weight: float) -> Any:
    """The cache of a part of a batch that has this weight in the loss of the whole.

    The gradient dy carries the weight, and layers need not know it. Only a layer that adds the gradient of a loss of
    its own in backward, such as the balance of experts, has a cache with a field `batch_weight`.
    """
    if weight == 1.0 or not isinstance(cache, tuple | list):
        return cache
    if hasattr(cache, "batch_weight"):
        return cache._replace(batch_weight=weight)  # type: ignore[union-attr]
    items = [weighed(item, weight) for item in cache]
    if all(new is old for new, old in zip(items, cache, strict=True)):
        return cache
    return type(cache)(*items) if hasattr(cache, "_fields") else type(cache)(items)


def accuracy_of(logits: xp.ndarray, targets: Any, padding: int | None) -> xp.ndarray | None:
    """The share of targets, without padding, that have the largest logit; None if the targets are not classes."""
    if getattr(targets, "dtype", np.dtype(float)).kind not in "iu" or targets.shape != logits.shape[:-1]:
        return None
    counted = counted_targets(targets, padding)
    right = (logits.argmax(axis=-1) == to_device(targets)).reshape(-1)[to_device(counted)]
    return xp.asarray(right.sum() / max(len(counted), 1), logits.real.dtype)

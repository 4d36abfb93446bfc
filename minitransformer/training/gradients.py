"""One signature for everything that computes the gradient of a batch:

    gradients(batch, weight=1.0, measure=False) -> Measured(loss, accuracy)

adds `weight` times the gradient of the batch's loss to the gradients of the parameters. Here it is for a whole batch,
forward and backward; the files of parallel/ cut the batch, and call another `gradients` for each part. So they can be
put around each other in any order, and each can be compared with the plain one.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from minitransformer.backend import to_device, xp
from minitransformer.data.task import TrainingBatch
from minitransformer.layers.losses import blockwise_loss, counted_targets, has_features, padding_of


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


class ChunkedGradients(PlainGradients):
    """The same for the models of the package, with head and loss for a few tokens at a time (see `blockwise_loss`).

    The logits of all tokens, often the largest array of a step, are never held at one time.
    """

    def __call__(self, batch: TrainingBatch, weight: float = 1.0, measure: bool = False) -> Measured:
        """See `Gradients`."""
        y, cache = self.model.features(*batch.inputs, rng=self.rng)
        loss, dy, accuracy = blockwise_loss(self.model, y, batch.targets, self.loss_fn, weight, self.rng, measure)
        self.model.features_backward(dy, weighed(cache, weight))
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


def gradients_of(model: Any, loss_fn: Any, rng: np.random.Generator | None = None) -> PlainGradients:
    """The gradients of a whole batch, in chunks if the model and the loss can."""
    kind = ChunkedGradients if has_features(model) and hasattr(loss_fn, "num_terms") else PlainGradients
    return kind(model, loss_fn, rng)


def accuracy_of(logits: xp.ndarray, targets: Any, padding: int | None) -> xp.ndarray | None:
    """The share of targets, without padding, that have the largest logit; None if the targets are not classes."""
    if getattr(targets, "dtype", np.dtype(float)).kind not in "iu" or targets.shape != logits.shape[:-1]:
        return None
    counted = counted_targets(targets, padding)
    right = (logits.argmax(axis=-1) == to_device(targets)).reshape(-1)[to_device(counted)]
    return xp.asarray(right.sum() / max(len(counted), 1), logits.real.dtype)


def in_parts(
    gradients: Gradients,
    parts: Iterable[TrainingBatch],
    counts: Sequence[int],
    weight: float,
    measure: bool,
) -> Measured:
    """Compute the parts of a batch one after another. `counts` says how many terms each has in the loss, a mean.

    loss = sum_i (n_i / n) loss_i        and therefore        grad = sum_i (n_i / n) grad_i
    """
    results, shares = [], shares_of(counts)
    for part, share in zip(parts, shares, strict=True):
        results.append(gradients(part, weight * share, measure))
    return weighted(results, shares)


def shares_of(counts: Sequence[int]) -> list[float]:
    """The weight of each part in the loss of the whole: its share of the terms that the loss is a mean over."""
    return [count / max(sum(counts), 1) for count in counts]


def weighted(results: Sequence[Measured], shares: Sequence[float]) -> Measured:
    """The loss and the accuracy of the whole from those of its parts."""

    def total(values: Sequence[Any]) -> Any:
        return sum(share * value for share, value in zip(shares, values, strict=True))

    losses, accuracies = zip(*results, strict=True)
    return Measured(total(losses), None if accuracies[0] is None else total(accuracies))


def count_terms(loss_fn: Any) -> Callable[[Any], int]:
    """The function that says how many terms the loss of these targets is a mean over.

    Raises TypeError for a loss without `num_terms`: a batch cannot be shared if the weights of its parts are unknown.
    """
    if not hasattr(loss_fn, "num_terms"):
        raise TypeError(f"{type(loss_fn).__name__} needs a method num_terms(targets) so that a batch can be shared")
    return loss_fn.num_terms

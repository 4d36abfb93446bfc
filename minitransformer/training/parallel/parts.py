"""The gradient of a batch in parts: its logits in blocks, and the weights of the parts of a batch that is cut."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minitransformer.data.task import TrainingBatch
from minitransformer.layers.losses import with_weight
from minitransformer.layers.since_2017.blockwise import blockwise_loss, has_features
from minitransformer.training.step import Measured, PlainGradients


class ChunkedGradients(PlainGradients):
    """The same for the models of the package, with head and loss for a few tokens at a time (see `blockwise_loss`).

    The logits of all tokens, often the largest array of a step, are never held at one time.
    """

    def __call__(self, batch: TrainingBatch, weight: float = 1.0, measure: bool = False) -> Measured:
        """See `Gradients`."""
        y, cache = self.model.features(*batch.inputs, rng=self.rng)
        loss, dy, accuracy = blockwise_loss(self.model, y, batch.targets, self.loss_fn, weight, self.rng, measure)
        self.model.features_backward(dy, with_weight(cache, weight))
        return Measured(loss, accuracy)


def gradients_of(model: Any, loss_fn: Any, rng: np.random.Generator | None = None) -> PlainGradients:
    """The gradients of a whole batch, in chunks if the model and the loss can."""
    kind = ChunkedGradients if has_features(model) and hasattr(loss_fn, "num_terms") else PlainGradients
    return kind(model, loss_fn, rng)


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

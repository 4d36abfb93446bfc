"""The loss as an object, so that any other can be passed to the training loop."""

from typing import Any

import numpy as np

from minitransformer.backend import to_device, xp
from minitransformer.checks import check_ids, check_rate
from minitransformer.config import special_ids
from minitransformer.functional import cross_entropy, cross_entropy_backward


class CrossEntropyLoss:
    """Mean cross-entropy in nats over the tokens that are not padding, with label smoothing (paper section 5.4).

    `label_smoothing` is the paper's epsilon_ls: 0.1 in the paper, 0 by default. Raises ValueError outside [0, 1).
    `padding` is the target that does not count; None: every target counts. 0 is right for our own models, and a token
    for GPT-2 or Llama: `loss_for(model)` makes the loss that a model needs, and `train` uses it.
    """

    def __init__(self, label_smoothing: float = 0.0, padding: int | None = 0) -> None:
        self.label_smoothing = check_rate("label_smoothing", label_smoothing)
        self.padding = padding

    def forward(self, logits: xp.ndarray, targets: np.ndarray) -> tuple[xp.ndarray, Any]:
        """logits (..., V), targets (...) ids on the host -> the loss, a 0-d array, and a cache for backward.

        Overwrites the array of the logits. Raises IndexError for targets outside the vocabulary.
        """
        check_ids("targets", targets, logits.shape[-1])  # on the host: a GPU would read out of bounds silently
        return cross_entropy(logits, to_device(targets), self.label_smoothing, self.padding, overwrite=True)

    def backward(self, dloss: float, cache: Any) -> xp.ndarray:
        """dlogits (..., V) from dloss, which is 1 for the gradient of the loss itself."""
        return cross_entropy_backward(dloss, cache)

    def num_terms(self, targets: np.ndarray) -> int:
        """The number of tokens that the mean is over: the weight of a part of a batch in the loss of the whole."""
        return len(counted_targets(targets, self.padding))


def loss_for(model: Any, label_smoothing: float = 0.0) -> CrossEntropyLoss:
    """The loss that leaves out the model's padding, or the target 0 of a classifier, whose classes begin at 1."""
    is_classifier = getattr(model, "options", {}).get("num_classes") is not None
    return CrossEntropyLoss(label_smoothing, 0 if is_classifier else special_ids(model).padding)


def padding_of(loss_fn: Any, model: Any) -> int | None:
    """The target that does not count, or None: what the loss says, or else what `loss_for` the model would say."""
    return (loss_fn if hasattr(loss_fn, "padding") else loss_for(model)).padding


def counted_targets(targets: np.ndarray, padding: int | None) -> np.ndarray:
    """The places of the targets that are not padding, in the flattened array."""
    return np.arange(targets.size) if padding is None else np.flatnonzero(targets != padding)


def accuracy_of(logits: xp.ndarray, targets: Any, padding: int | None) -> xp.ndarray | None:
    """The share of targets, without padding, that have the largest logit; None if the targets are not classes."""
    if getattr(targets, "dtype", np.dtype(float)).kind not in "iu" or targets.shape != logits.shape[:-1]:
        return None
    counted = counted_targets(targets, padding)
    right = (logits.argmax(axis=-1) == to_device(targets)).reshape(-1)[to_device(counted)]
    return xp.asarray(right.sum() / max(len(counted), 1), logits.real.dtype)


def with_weight(cache: Any, weight: float) -> Any:
    """The cache of a part of a batch that has this weight in the loss of the whole.

    The gradient dy carries the weight, and layers need not know it. Only a layer that adds the gradient of a loss of
    its own in backward, such as the balance of experts, has a cache with a field `batch_weight`.
    """
    if weight == 1.0 or not isinstance(cache, tuple | list):
        return cache
    if hasattr(cache, "batch_weight"):
        return cache._replace(batch_weight=weight)  # type: ignore[union-attr]
    items = [with_weight(item, weight) for item in cache]
    if all(new is old for new, old in zip(items, cache, strict=True)):
        return cache
    return type(cache)(*items) if hasattr(cache, "_fields") else type(cache)(items)

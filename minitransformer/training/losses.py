"""The loss as an object, so that any other can be passed to the training loop."""

from typing import Any

import numpy as np

from minitransformer.backend import to_device, xp
from minitransformer.checks import check_ids, check_rate
from minitransformer.functional import cross_entropy, cross_entropy_backward
from minitransformer.vocabulary import PAD


class CrossEntropyLoss:
    """Mean cross-entropy in nats over the tokens that are not padding, with label smoothing (paper section 5.4).

    `label_smoothing` is the paper's epsilon_ls: 0.1 in the paper, 0 by default. Raises ValueError outside [0, 1).
    """

    def __init__(self, label_smoothing: float = 0.0) -> None:
        self.label_smoothing = check_rate("label_smoothing", label_smoothing)

    def forward(self, logits: xp.ndarray, targets: np.ndarray) -> tuple[xp.ndarray, Any]:
        """logits (B, T, V), targets (B, T) ids on the host -> the loss, a 0-d array, and a cache for backward.

        Overwrites the array of the logits. Raises IndexError for targets outside the vocabulary.
        """
        check_ids("targets", targets, logits.shape[-1])  # on the host: a GPU would read out of bounds silently
        return cross_entropy(logits, to_device(targets), self.label_smoothing, PAD, overwrite=True)

    def backward(self, dloss: float, cache: Any) -> xp.ndarray:
        """dlogits (B, T, V) from dloss, which is 1 for the gradient of the loss itself."""
        return cross_entropy_backward(dloss, cache)

    @staticmethod
    def num_terms(targets: np.ndarray) -> int:
        """The number of tokens that the mean is over: the weight of a part of a batch in the loss of the whole."""
        return int(np.count_nonzero(targets != PAD))

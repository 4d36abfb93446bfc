"""The loss on text that training has not seen."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from minitransformer.backend import to_device
from minitransformer.checks import check_ids
from minitransformer.core import Layer
from minitransformer.functional.cross_entropy import cross_entropy
from minitransformer.vocabulary import PAD


def mean_loss(model: Layer, batches: Iterable[Any], micro_batch_size: int | None = None) -> float:
    """Mean cross-entropy in nats over all targets of `batches` that are not padding, without dropout or smoothing.

    Each batch has `inputs` for the model and `targets` (B, T). A batch with more than `micro_batch_size` sequences is
    computed in parts, which need less memory. Raises IndexError for targets outside the vocabulary.
    """
    total, count = 0.0, 0
    for batch in _cut(batches, micro_batch_size):
        logits = model(*batch.inputs)
        check_ids("targets", batch.targets, logits.shape[-1])
        loss, _ = cross_entropy(logits, to_device(batch.targets), pad=PAD, overwrite=True)
        tokens = int(np.count_nonzero(batch.targets != PAD))
        total, count = total + float(loss) * tokens, count + tokens
    return total / max(count, 1)


def _cut(batches, rows):
    for batch in batches:
        step = rows or max(1, len(batch.targets))
        for start in range(0, len(batch.targets), step):
            yield type(batch)(*(ids[start : start + step] for ids in batch))

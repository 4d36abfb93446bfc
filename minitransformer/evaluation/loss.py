"""The loss on text that training has not seen."""

from collections.abc import Iterable
from typing import Any

from minitransformer.layers.losses import loss_for
from minitransformer.layers.since_2017.blockwise import blockwise_loss, features_and_head
from minitransformer.models.reading import read


def mean_loss(model: Any, batches: Iterable[Any], micro_batch_size: int | None = None) -> float:
    """Mean cross-entropy in nats over all targets of `batches` that are not padding, without dropout or smoothing.

    Each batch has `inputs` for the model and `targets` (B, T). A batch with more than `micro_batch_size` sequences is
    computed in parts, which need less memory. Raises IndexError for targets outside the vocabulary.
    """
    total, count, loss_fn = 0.0, 0, loss_for(model)
    for batch in _cut(batches, micro_batch_size):
        features, _ = features_and_head(model)
        loss = blockwise_loss(model, read(features, *batch.inputs), batch.targets, loss_fn).loss
        tokens = loss_fn.num_terms(batch.targets)
        total, count = total + float(loss) * tokens, count + tokens
    return total / max(count, 1)


def _cut(batches, rows):
    for batch in batches:
        step = rows or max(1, len(batch.targets))
        for start in range(0, len(batch.targets), step):
            yield type(batch)(*(ids[start : start + step] for ids in batch))

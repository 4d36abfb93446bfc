"""The loss on text that training has not seen."""

import numpy as np

from minitransformer.backend import to_device
from minitransformer.checks import check_ids
from minitransformer.functional import cross_entropy
from minitransformer.vocabulary import PAD


def mean_loss(model, batches, micro_batch_size=None):
    """Cross-entropy in nats per token that counts, over all `batches`, without dropout or smoothing -> float.

    A batch with more than `micro_batch_size` sequences is cut, to need no more memory than so many do.
    """
    total, count = 0.0, 0
    for batch in _cut(batches, micro_batch_size):
        logits = model(*batch.inputs)
        check_ids("targets", batch.targets, logits.shape[-1])
        loss, _ = cross_entropy(logits, to_device(batch.targets), pad=PAD, overwrite=True)
        tokens = np.count_nonzero(batch.targets != PAD)
        total, count = total + float(loss) * tokens, count + tokens
    return total / max(count, 1)


def _cut(batches, rows):
    for batch in batches:
        step = rows or max(1, len(batch.targets))
        for start in range(0, len(batch.targets), step):
            yield type(batch)(*(ids[start : start + step] for ids in batch))

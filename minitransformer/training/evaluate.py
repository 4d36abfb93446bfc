"""The loss on text that training has not seen."""

import numpy as np

from minitransformer.backend import to_device
from minitransformer.functional import cross_entropy
from minitransformer.models.config import PAD


def mean_loss(model, batches):
    """Cross-entropy in nats per token that counts, over all `batches`, without dropout or smoothing -> float."""
    total, count = 0.0, 0
    for batch in batches:
        logits, _ = model.forward(*batch.inputs)
        loss, _ = cross_entropy(logits, to_device(batch.targets), pad=PAD, overwrite=True)
        tokens = np.count_nonzero(batch.targets != PAD)
        total, count = total + float(loss) * tokens, count + tokens
    return total / max(count, 1)

"""How well a model predicts, beside the loss."""

from minitransformer.backend import xp
from minitransformer.vocabulary import PAD


def token_accuracy(logits, target):
    """The share of target tokens (B, T), padding left out, that have the largest logit (B, T, V) -> a 0-d array."""
    counts = target != PAD
    right = (logits.argmax(axis=-1) == target) & counts
    right, counts = (mask.sum().astype(logits.real.dtype) for mask in (right, counts))
    return right / xp.maximum(counts, 1)

"""Accuracy: the share of tokens that are predicted correctly."""

from minitransformer.backend import xp
from minitransformer.vocabulary import PAD


def token_accuracy(logits: xp.ndarray, targets: xp.ndarray) -> xp.ndarray:
    """The share of targets (B, T), without padding, whose logit is the largest of logits (B, T, V) -> a 0-d array."""
    counts = targets != PAD
    right = (logits.argmax(axis=-1) == targets) & counts
    right, counts = (mask.sum().astype(logits.real.dtype) for mask in (right, counts))
    return right / xp.maximum(counts, 1)

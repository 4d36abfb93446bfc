"""The share of right tokens: padding does not count."""

import numpy as np

from minitransformer.evaluation.accuracy import token_accuracy
from tests.helpers import device


def test_token_accuracy_counts_right_tokens_that_are_not_padding():
    target = np.array([[3, 4, 2, 0], [5, 2, 0, 0]])
    said = np.array([[3, 5, 2, 0], [5, 2, 4, 0]])
    logits = np.random.default_rng(0).random((2, 4, 6))
    for b, t in np.ndindex(2, 4):
        logits[b, t, said[b, t]] += 1.0
    assert token_accuracy(device(logits), device(target)) == 4 / 5
    assert token_accuracy(device(logits), device(np.zeros_like(target))) == 0.0

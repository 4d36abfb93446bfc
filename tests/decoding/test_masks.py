"""Filling in masks: the likeliest tokens where the mask is, and nowhere else."""

import numpy as np
import pytest

from minitransformer.decoding import fill_mask
from minitransformer.vocabulary import SPECIAL_TOKENS
from tests.helpers import device

V, MASK_ID = 11, 10
IDS = np.array([4, MASK_ID, 7, MASK_ID, 3])


class Scripted:
    """A model that gives the same logits to everything it reads."""

    def __init__(self, logits):
        self.logits = logits

    def __call__(self, ids):
        assert ids.shape == (1, len(IDS))
        return device(self.logits[None])


def test_guesses_are_the_most_likely_tokens_with_their_probabilities():
    logits = np.random.default_rng(0).standard_normal((len(IDS), V))
    filled = fill_mask(Scripted(logits), IDS, MASK_ID, top_k=3)
    for row, place in enumerate((1, 3)):
        p = [np.exp(logits[place, i]) / sum(np.exp(logits[place])) for i in range(V)]
        allowed = range(len(SPECIAL_TOKENS), MASK_ID)
        best = sorted(allowed, key=lambda i: -p[i])[:3]
        assert filled.ids[row].tolist() == best
        np.testing.assert_allclose(filled.probabilities[row], [p[i] for i in best], rtol=1e-12)


def test_special_tokens_and_the_mask_are_never_guessed():
    logits = np.zeros((len(IDS), V))
    logits[:, [0, 1, 2, MASK_ID]] = 50.0
    filled = fill_mask(Scripted(logits), IDS, MASK_ID, top_k=99)
    assert filled.ids.tolist() == [list(range(3, MASK_ID))] * 2
    assert (filled.probabilities < 1e-20).all()


def test_text_without_a_mask_and_no_guesses_are_refused():
    with pytest.raises(ValueError, match="there is no mask to fill: no id is mask_id = 10"):
        fill_mask(Scripted(np.zeros((5, V))), np.array([4, 5, 7, 3, 3]), MASK_ID)
    with pytest.raises(ValueError, match="top_k must be at least 1, got 0"):
        fill_mask(Scripted(np.zeros((5, V))), IDS, MASK_ID, top_k=0)

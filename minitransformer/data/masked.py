"""Masked language modelling (Devlin et al. 2019, section 3.1): say which tokens were hidden."""

from typing import NamedTuple

import numpy as np

from minitransformer.models.config import PAD

CHOSEN, MASKED, RANDOM = 0.15, 0.8, 0.1  # share of tokens to be predicted; of these, hidden and replaced


class MaskedBatch(NamedTuple):
    """Windows with some tokens hidden; the targets are padding, which does not count, where nothing is asked."""

    ids: np.ndarray  # (B, T)
    answers: np.ndarray  # (B, T)

    @property
    def inputs(self):
        """What the model takes."""
        return (self.ids,)

    @property
    def targets(self):
        """What its logits are compared with."""
        return self.answers


class MaskedTask:
    """Windows of another task's text, with 15 % of the tokens to be predicted.

    80 % of these are replaced by the mask, 10 % by any token of the training text, and 10 % left as they are, so that
    the model cannot trust a token merely because it is not the mask. The mask is one more id, behind those of the
    tokenizer.
    """

    def __init__(self, text_task):
        self.text_task = text_task
        self.mask_id = text_task.tokenizer.vocab_size
        self.vocab_size = self.mask_id + 1
        self.tokens = np.unique(text_task.train)  # no special ones

    def batch(self, rng, size):
        """`size` windows from anywhere in the training text -> MaskedBatch."""
        return self.hide(rng, self.text_task.batch(rng, size).ids)

    def held_out_batches(self, size, seed=0):
        """The held-out text, with the same tokens hidden each time -> MaskedBatch after MaskedBatch."""
        rng = np.random.default_rng(seed)
        for batch in self.text_task.held_out_batches(size):
            yield self.hide(rng, batch.ids)

    def hide(self, rng, ids):
        """ids (B, T) -> MaskedBatch."""
        chosen = rng.random(ids.shape) < CHOSEN
        fate = rng.random(ids.shape)
        hidden = np.where(chosen & (fate < MASKED), self.mask_id, ids)
        replaced = chosen & (fate >= MASKED) & (fate < MASKED + RANDOM)
        hidden = np.where(replaced, self.tokens[rng.integers(0, len(self.tokens), ids.shape)], hidden)
        return MaskedBatch(hidden, np.where(chosen, ids, PAD))

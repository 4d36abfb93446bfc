"""Masked language modelling (Devlin et al. 2019, section 3.1): say which tokens were hidden."""

import numpy as np

from minitransformer.data.text import TextBatch
from minitransformer.vocabulary import PAD

CHOSEN, MASKED, RANDOM = 0.15, 0.8, 0.1  # share of tokens to be predicted; of these, hidden and replaced


class MaskedTask:
    """Windows of another task's text, with 15 % of the tokens to be predicted.

    80 % of these are replaced by the mask, 10 % by any token of the training text, and 10 % left as they are, so that
    the model cannot trust a token merely because it is not the mask. The mask is one more id, behind those of the
    tokenizer.
    """

    def __init__(self, text_task):
        self.text_task, self.tokenizer = text_task, text_task.tokenizer
        self.train_characters, self.held_out_characters = text_task.train_characters, text_task.held_out_characters
        self.mask_id = text_task.tokenizer.vocab_size
        self.vocab_size = self.mask_id + 1
        self.tokens = np.unique(text_task.train)  # no special ones

    def batch(self, rng, size):
        """`size` windows from anywhere in the training text -> TextBatch."""
        return self.hide(rng, self.text_task.batch(rng, size).ids)

    def held_out_batches(self, size, seed=0):
        """The held-out text, with the same tokens hidden each time -> TextBatch after TextBatch."""
        rng = np.random.default_rng(seed)
        for batch in self.text_task.held_out_batches(size):
            yield self.hide(rng, batch.ids)

    def hide(self, rng, ids):
        """ids (B, T) -> TextBatch."""
        chosen = rng.random(ids.shape) < CHOSEN
        fate = rng.random(ids.shape)
        hidden = np.where(chosen & (fate < MASKED), self.mask_id, ids)
        replaced = chosen & (fate >= MASKED) & (fate < MASKED + RANDOM)
        hidden = np.where(replaced, self.tokens[rng.integers(0, len(self.tokens), ids.shape)], hidden)
        return TextBatch(hidden, np.where(chosen, ids, PAD))

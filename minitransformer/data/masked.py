"""Masked language modeling (Devlin et al. 2019, section 3.1): predict the tokens that were hidden."""

from collections.abc import Iterator

import numpy as np

from minitransformer.data.text import TextBatch, TextTask

CHOSEN, MASKED, RANDOM = 0.15, 0.8, 0.1  # share of tokens to predict; of these, the shares masked and replaced


class MaskedTask:
    """Windows of another task's text, with 15 % of the tokens to predict.

    80 % of these are replaced by the mask token, 10 % by a random token of the training text, and 10 % stay as they
    are. So the model cannot rely on a token being right because it is not the mask. The mask token gets one more id,
    after those of the tokenizer, unless that has one. `padding` is the target of all other tokens.
    """

    def __init__(self, text_task: TextTask, padding: int = 0):
        self.padding, self.text_task, self.tokenizer = padding, text_task, text_task.tokenizer
        self.train_characters, self.held_out_characters = text_task.train_characters, text_task.held_out_characters
        self.sha256 = text_task.sha256
        self.mask_id = text_task.tokenizer.mask_id
        self.vocab_size = max(self.tokenizer.vocab_size, self.mask_id + 1)
        self.token_ids = np.unique(text_task.train)  # without special tokens

    def batch(self, rng: np.random.Generator, size: int) -> TextBatch:
        """`size` windows that start anywhere in the training text."""
        return self.mask_tokens(rng, self.text_task.batch(rng, size).ids)

    def held_out_batches(self, size: int, seed: int = 0) -> Iterator[TextBatch]:
        """The held-out text, `size` windows at a time. The same tokens are masked every time."""
        rng = np.random.default_rng(seed)
        for batch in self.text_task.held_out_batches(size):
            yield self.mask_tokens(rng, batch.ids)

    def mask_tokens(self, rng: np.random.Generator, ids: np.ndarray) -> TextBatch:
        """ids (B, T) with some of them masked or replaced; the targets are the original ids of the chosen tokens."""
        chosen = rng.random(ids.shape) < CHOSEN
        fate = rng.random(ids.shape)
        masked = np.where(chosen & (fate < MASKED), self.mask_id, ids)
        replaced = chosen & (fate >= MASKED) & (fate < MASKED + RANDOM)
        masked = np.where(replaced, self.token_ids[rng.integers(0, len(self.token_ids), ids.shape)], masked)
        return TextBatch(masked, np.where(chosen, ids, self.padding))

"""What every tokenizer does."""

import numpy as np

from minitransformer.checks import check_ids


class Tokenizer:
    """A vocabulary, and the way from text to ids and back. A subclass says what the tokens are.

    The special tokens are never made from text: "<pad>" in a text is five characters like any others. Whoever wants
    bos or eos around a text puts their ids there.
    """

    kind = ""  # the name of the subclass in a file

    @property
    def tokens(self):
        """The text of every token in the order of the ids; special tokens by their names."""
        raise NotImplementedError

    @property
    def vocab_size(self):
        """How many tokens there are, the special ones included."""
        return len(self.tokens)

    def encode(self, text):
        """The ids of a text -> (length,) int64. Raises TypeError if it is not a str."""
        raise NotImplementedError

    def decode(self, ids):
        """The text of a row of ids (length,); special tokens have none.

        Raises IndexError for an id that the vocabulary does not have, ValueError if there is more than one row.
        """
        raise NotImplementedError

    def to_dict(self):
        """All that is needed to make it again, in what JSON can hold; see `tokenizer_from_dict`."""
        raise NotImplementedError


def check_text(text):
    """TypeError unless `text` is a str."""
    if not isinstance(text, str):
        raise TypeError(f"a tokenizer takes text as a str, got {type(text).__name__}")


def check_row(ids, vocab_size):
    """`ids` as a list of numbers, if it is one row of ids of the vocabulary, which may be empty."""
    ids = np.asarray(ids)
    if ids.ndim != 1:
        raise ValueError(f"decode takes one row of ids, got an array of shape {ids.shape}")
    if ids.size:
        check_ids("ids", ids, vocab_size)
    return ids.tolist()

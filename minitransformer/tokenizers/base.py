"""What every tokenizer does."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from minitransformer.checks import check_ids


class Tokenizer:
    """A vocabulary, and the way from text to ids and back. A subclass defines the tokens.

    Encoding never produces <pad>, <bos> or <eos>: "<pad>" in a text is five characters like any others. To put bos or
    eos around a text, add their ids. (Only ByteLevelTokenizer finds special tokens in a text, because GPT-2's does.)
    """

    kind = ""  # the name of the subclass in a saved file
    padding = 0  # the id that fills up shorter rows

    @property
    def tokens(self) -> tuple[str, ...]:
        """The text of every token in the order of the ids; special tokens by their names."""
        raise NotImplementedError

    @property
    def vocab_size(self) -> int:
        """The number of tokens, including the special ones."""
        return len(self.tokens)

    @property
    def mask_id(self) -> int:
        """The id that hides a token in masked language modeling: one more than the tokenizer has, unless it has one."""
        return self.vocab_size

    def encode(self, text: str) -> np.ndarray:
        """The ids of a text, (length,) int64. Raises TypeError if it is not a str."""
        raise NotImplementedError

    def decode(self, ids: np.ndarray | Sequence[int]) -> str:
        """The text of one row of ids (length,). Special tokens have no text.

        Raises IndexError for an id outside the vocabulary, and ValueError for more than one row.
        """
        raise NotImplementedError

    def count_characters(self, ids: np.ndarray) -> int:
        """How many characters the tokens of one row of ids (length,) stand for; special tokens stand for none."""
        return len(self.decode(ids))

    def decode_stream(self, ids: Iterable[int]) -> Iterator[str]:
        """The text that each id completes, as soon as it is known: for printing while ids are generated."""
        return (self.decode([id]) for id in ids)

    def to_dict(self) -> dict[str, Any]:
        """Everything needed to build the tokenizer again, as values that JSON can hold; see `tokenizer_from_dict`."""
        raise NotImplementedError

    @classmethod
    def from_dict(cls, content: dict[str, Any]) -> "Tokenizer":
        """Build a tokenizer from the result of `to_dict`; other content is a ValueError, TypeError or KeyError."""
        raise NotImplementedError


def check_text(text: str) -> None:
    """TypeError unless `text` is a str."""
    if not isinstance(text, str):
        raise TypeError(f"a tokenizer takes text as a str, got {type(text).__name__}")


def check_row(ids: np.ndarray | Sequence[int], vocab_size: int) -> list[int]:
    """`ids` as a list of numbers. Raises an error unless they are one row of ids of the vocabulary; it may be empty."""
    ids = np.asarray(ids)
    if ids.ndim != 1:
        raise ValueError(f"decode takes one row of ids, got an array of shape {ids.shape}")
    if ids.size:
        check_ids("ids", ids, vocab_size)
    return ids.tolist()

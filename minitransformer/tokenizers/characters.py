"""The simplest tokenizer: each character is a token."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from minitransformer.tokenizers.base import Tokenizer, check_row, check_text
from minitransformer.vocabulary import SPECIAL_TOKENS

UNKNOWN = "<unk>"
REPLACEMENT = "\N{REPLACEMENT CHARACTER}"  # the text of <unk>


class CharacterTokenizer(Tokenizer):
    """<pad>, <bos>, <eos>, <unk> if `unknown` is True, then `characters` in their order.

    With <unk>, an unknown character becomes <unk>, which decodes to the replacement character U+FFFD. Without it, an
    unknown character is an error, so nothing is lost silently. Raises ValueError for an item of `characters` that is
    not one character or is there twice.
    """

    kind = "characters"

    def __init__(self, characters: Iterable[str], unknown: bool = False):
        self.characters = tuple(characters)
        self.unknown = bool(unknown)
        specials = (*SPECIAL_TOKENS, UNKNOWN) if self.unknown else SPECIAL_TOKENS
        self._tokens = (*specials, *self.characters)
        self._texts = (
            *("" for _ in SPECIAL_TOKENS),
            *(REPLACEMENT for _ in specials[len(SPECIAL_TOKENS) :]),
            *self.characters,
        )
        self._ids = {character: id for id, character in enumerate(self.characters, len(specials))}
        for character in self.characters:
            if not isinstance(character, str) or len(character) != 1:
                raise ValueError(f"a character must be a str of length 1, got {character!r}")
        if len(self._ids) < len(self.characters):
            twice = next(c for i, c in enumerate(self.characters) if c in self.characters[:i])
            raise ValueError(f"the character {twice!r} is there twice")

    @classmethod
    def train(cls, text: str, unknown: bool = False) -> "CharacterTokenizer":
        """A tokenizer with the characters of `text`, sorted by their code points."""
        check_text(text)
        return cls(sorted(set(text)), unknown)

    @property
    def tokens(self) -> tuple[str, ...]:
        """The special tokens, then the characters in the order of their ids."""
        return self._tokens

    def encode(self, text: str) -> np.ndarray:
        """The ids of a text, (length,) int64. Raises ValueError for an unknown character if there is no <unk>."""
        check_text(text)
        if self.unknown:
            ids, unknown_id = self._ids, len(SPECIAL_TOKENS)
            return np.fromiter((ids.get(character, unknown_id) for character in text), np.int64, len(text))
        try:
            return np.fromiter(map(self._ids.__getitem__, text), np.int64, len(text))
        except KeyError:
            place = next(i for i, character in enumerate(text) if character not in self._ids)
        raise ValueError(
            f"this tokenizer does not know the character {text[place]!r} (U+{ord(text[place]):04X}) "
            f"at position {place} of the text, counted from 0"
        )

    def decode(self, ids: np.ndarray | Sequence[int]) -> str:
        """The text of one row of ids (length,). Special tokens have no text, except <unk>, which is U+FFFD."""
        texts = self._texts
        return "".join([texts[i] for i in check_row(ids, self.vocab_size)])

    def to_dict(self) -> dict[str, Any]:
        """The characters, and whether there is <unk>."""
        return {"kind": self.kind, "unknown": self.unknown, "characters": list(self.characters)}

    @classmethod
    def from_dict(cls, content: dict[str, Any]) -> "CharacterTokenizer":
        """Build a tokenizer from the result of `to_dict`; other content is a ValueError, TypeError or KeyError."""
        characters, unknown = content["characters"], content["unknown"]
        if not isinstance(characters, list) or not isinstance(unknown, bool):
            raise TypeError("characters must be a list, and unknown true or false")
        return cls(characters, unknown)

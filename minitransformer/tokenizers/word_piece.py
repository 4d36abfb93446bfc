"""BERT's tokenizer (Devlin et al. 2019, section 4.1): whole words where the vocabulary has them, pieces where not.

A text becomes ids in three steps:

1. It is made plain. Control characters go, white space becomes a space, each Chinese character is a word; and unless
   case matters, accents go and letters become small: "Où est-il?" -> "ou est-il?".
2. It is split at spaces and around each punctuation mark: "ou", "est", "-", "il", "?".
3. Each word is cut from the left, each time after the longest piece that the vocabulary has. Pieces that don't begin a
   word are written with "##":

       "unaffable"    "unaffable", "unaffabl", ... are not there, "una" is                  -> una
       "ffable"       "##ffable", "##ffabl", "##ffab" are not there, "##ffa" is             -> ##ffa
       "ble"          "##ble" is                                                            -> ##ble

   Nothing is ever taken back. A word with no way through is one [UNK], and so is a word of more than 100 characters.

Byte pairs (see byte_pair.py) merge upwards, in the order in which training found the pairs. This cuts downwards, and
needs no order: the vocabulary is all there is to save. But white space, accents and unknown words are lost for good.
"""

import re
import unicodedata
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from minitransformer.checks import check_integer
from minitransformer.tokenizers.base import Tokenizer, check_row, check_text
from minitransformer.tokenizers.byte_merging import CACHED_LENGTH, CACHED_WORDS
from minitransformer.tokenizers.words import SPACE

PAD, UNKNOWN, CLS, SEP, MASK = SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
LONGEST = 100  # characters of a word that is cut into pieces
IS_SPACE = re.compile(f"[{SPACE}]")
CHINESE = re.compile("[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0002a6df\U0002a700-\U0002b73f"
                     "\U0002b740-\U0002b81f\U0002b920-\U0002ceaf\U0002f800-\U0002fa1f]")  # fmt: skip
NO_SPACE_BEFORE = (" .", " ?", " !", " ,", " n't", " 'm", " 's", " 've", " 're")  # when pieces become a text again


class Sentences(NamedTuple):
    """One or two sentences as BERT reads them: [CLS] A [SEP], or [CLS] A [SEP] B [SEP]."""

    ids: np.ndarray  # (T,)
    segments: np.ndarray  # (T,), 1 for B and the [SEP] after it


class WordPieceTokenizer(Tokenizer):
    """`tokens` in the order of their ids, with "##" before those that go on with a word.

    `special` tokens are found in a text, written as they are, before anything else, and have no text when they are
    decoded; BERT's five must be among them. `lowercase` is for "uncased" models; `strip_accents` is as `lowercase`
    unless it is given. The ids are those of the library `tokenizers`, except where Unicode changed after 2015: its
    tables of marks and punctuation are that old, and here they are Python's.

    Raises ValueError for a token that is there twice, or a special one that is not there.
    """

    kind = "word_piece"

    def __init__(
        self,
        tokens: Sequence[str],
        *,
        lowercase: bool = True,
        strip_accents: bool | None = None,
        special: Sequence[str] = SPECIAL,
    ) -> None:
        self._tokens, self.special = tuple(tokens), tuple(special)
        self.lowercase, self.strip_accents = lowercase, lowercase if strip_accents is None else strip_accents
        self._ids = {token: id for id, token in enumerate(self._tokens)}
        if len(self._ids) < len(self._tokens):
            twice = next(token for id, token in enumerate(self._tokens) if self._ids[token] != id)
            raise ValueError(f"the token {twice!r} is there twice")
        for name in (*SPECIAL, *self.special):
            if name not in self._ids or name not in self.special:
                raise ValueError(f"the special token {name!r} is not among the tokens")
        self.padding = self._ids[PAD]
        longest_first = sorted(self.special, key=len, reverse=True)
        self._special = re.compile(f"({'|'.join(map(re.escape, longest_first))})")
        self._cleaned, self._spaced = _Table(_clean), _Table(self._plain)
        self._cache: dict[str, list[int]] = {}  # word -> its ids

    @property
    def tokens(self) -> tuple[str, ...]:
        """The tokens in the order of their ids, with "##" before those that go on with a word."""
        return self._tokens

    @property
    def mask_id(self) -> int:
        """The id of [MASK]."""
        return self._ids[MASK]

    def encode(self, text: str) -> np.ndarray:
        """The ids of a text, (length,) int64, without [CLS] and [SEP]: see `encode_pair`."""
        return np.array(self._encode(text), dtype=np.int64)

    def encode_pair(self, first: str, second: str | None = None, length: int | None = None) -> Sentences:
        """One sentence or two, with [CLS] and [SEP], as BERT reads them -> ids and segments.

        If they have more than `length` ids, the longer one is shortened from its end, again and again. Raises
        ValueError for a length that has no room for [CLS] and [SEP].
        """
        parts = [self._encode(text) for text in (first, second) if text is not None]
        if length is not None:
            most = check_integer("length", length, least=1 + len(parts)) - 1 - len(parts)
            shortest_first = sorted(parts, key=len)
            while sum(map(len, parts)) > most:
                max(shortest_first, key=len).pop()
        ids, segments = [self._ids[CLS]], [0]
        for segment, part in enumerate(parts):
            ids += [*part, self._ids[SEP]]
            segments += [segment] * (len(part) + 1)
        return Sentences(np.array(ids), np.array(segments))

    def _encode(self, text):
        check_text(text)
        ids: list[int] = []
        for odd, part in enumerate(self._special.split(text)):
            if odd % 2:
                ids.append(self._ids[part])
            else:
                for word in self._words(part):
                    ids += self._pieces(word)
        return ids

    def _words(self, text):
        """The words of a plain text, and its punctuation marks."""
        text = text.translate(self._cleaned)
        if self.strip_accents:
            text = unicodedata.normalize("NFD", text)  # é becomes e and a mark
        return text.translate(self._spaced).split()

    def _plain(self, character):
        """A character with spaces around it if it is punctuation, and otherwise without marks and as a small letter."""
        kind = unicodedata.category(character)
        if kind[0] == "P" or ("!" <= character <= "~" and not character.isalnum()):
            return f" {character} "
        if self.strip_accents and kind == "Mn":
            return ""
        return character.lower() if self.lowercase else character  # by itself: a sigma that ends a word is like others

    def _pieces(self, word):
        """The ids of the pieces of a word, each the longest from the left."""
        if word in self._cache:
            return self._cache[word]
        pieces, start = [], 0
        while start < len(word):
            prefix = "##" if start else ""
            ends = range(len(word), start, -1) if len(word) <= LONGEST else ()
            end = next((end for end in ends if prefix + word[start:end] in self._ids), None)
            if end is None:
                pieces = [self._ids[UNKNOWN]]
                break
            pieces.append(self._ids[prefix + word[start:end]])
            start = end
        if len(self._cache) < CACHED_WORDS and len(word) <= CACHED_LENGTH:
            self._cache[word] = pieces
        return pieces

    def decode(self, ids: np.ndarray | Sequence[int]) -> str:
        """The text of one row of ids (length,), with spaces between words, but none before a full stop or a comma."""
        names = [self._tokens[id] for id in check_row(ids, self.vocab_size)]
        text = ""
        for place, name in enumerate(name for name in names if name not in self.special):
            part = name if not place else name[2:] if name.startswith("##") else f" {name}"
            for mark in NO_SPACE_BEFORE:
                part = part.replace(mark, mark[1:])
            text += part
        return text

    def to_dict(self) -> dict[str, Any]:
        """The tokens in the order of their ids, the special ones, and how a text is made plain."""
        return {
            "kind": self.kind,
            "tokens": list(self._tokens),
            "special": list(self.special),
            "lowercase": self.lowercase,
            "strip_accents": self.strip_accents,
        }

    @classmethod
    def from_dict(cls, content: dict[str, Any]) -> "WordPieceTokenizer":
        """Build a tokenizer from the result of `to_dict`; other content is a ValueError, TypeError or KeyError."""
        for name in ("tokens", "special"):
            if not isinstance(content[name], list) or not all(isinstance(token, str) for token in content[name]):
                raise TypeError(f"{name} must be a list of texts")
        switches = {name: content[name] for name in ("lowercase", "strip_accents")}
        if not all(isinstance(value, bool) for value in switches.values()):
            raise TypeError("lowercase and strip_accents must be true or false")
        return cls(content["tokens"], special=content["special"], **switches)


class _Table(dict):
    """For `str.translate`: what becomes of each character, computed when it is first seen."""

    def __init__(self, change):
        super().__init__()
        self.change = change

    def __missing__(self, code):
        self[code] = self.change(chr(code))
        return self[code]


def _clean(character):
    """Nothing for control characters, a space for white space, and spaces around Chinese."""
    if character in "\t\n\r":
        return " "
    if character in "\0\ufffd" or unicodedata.category(character) in ("Cc", "Cf", "Co", "Cs"):
        return ""
    if CHINESE.match(character):
        return f" {character} "
    return " " if IS_SPACE.match(character) else character

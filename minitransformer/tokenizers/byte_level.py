"""Byte pairs with somebody else's vocabulary, as GPT-2's (Radford et al. 2019): ids in any order, and added tokens."""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from minitransformer.checks import check_choice
from minitransformer.tokenizers.byte_merging import ByteMergingTokenizer, split_merge
from minitransformer.tokenizers.visible import BYTE_ORDER, from_visible, to_visible
from minitransformer.tokenizers.words import PATTERNS


class AddedToken(NamedTuple):
    """A token that is found in a text before the text is split into words, such as <|endoftext|>."""

    content: str
    special: bool = True  # a special token has no text when it is decoded
    normalized: bool = False  # tokens that are not "normalized" are found first


class Reading(NamedTuple):
    """Where the tokenizers of later models read a text in another way than GPT-2's."""

    words: str = "gpt2"  # the pattern that splits it, of words.PATTERNS
    nfc: bool = False  # it is brought to Unicode's form NFC first, so that é is one character (as Python knows Unicode)
    whole: bool = False  # a word that is a token is this token, whatever the merges make of it
    first: str = ""  # a token that comes before those of each text


GPT2 = Reading()
NAMES: dict[type, str] = {AddedToken: "an added token", Reading: "reading", bool: "true or false", str: "text"}


class ByteLevelTokenizer(ByteMergingTokenizer):
    """`tokens` in the order of their ids, with bytes as visible letters (see visible.py): "Ġthe" is " the".

    `merges` are pairs of tokens in the order in which they are applied, such as ("Ġt", "he"). Each of the `added` is
    one of the `tokens`, written as it is: "Ġ" is no space there, unless a merge makes the same token. (The library
    `tokenizers` decodes the letters of an added token as bytes: "é" becomes the byte 233, which is no text.) Unlike our
    other tokenizers, this one finds its special tokens in a text, as GPT-2's does: "<|endoftext|>" becomes one id.
    `reading` is for models after GPT-2; with nfc, decoding gives the text in that form.

    Raises ValueError for a token that is there twice or empty, a byte that is no token, or a merge that is there twice
    or of parts that are not tokens.
    """

    kind = "byte_level"

    def __init__(
        self,
        tokens: Sequence[str],
        merges: Iterable[tuple[str, str]] = (),
        added: Iterable[AddedToken] = (),
        reading: Reading = GPT2,
    ) -> None:
        super().__init__()
        self.added, self.reading = tuple(added), reading
        self._words = check_choice("words", reading.words, tuple(PATTERNS))
        self.merges: list[tuple[str, str]] = []
        self._names = tuple(tokens)
        self._ids = {token: id for id, token in enumerate(self._names)}
        if len(self._ids) < len(self._names):
            twice = next(token for id, token in enumerate(self._names) if self._ids[token] != id)
            raise ValueError(f"the token {twice!r} is there twice")
        self._check_tokens()
        self._id_of_byte = [self._ids[to_visible(bytes([byte]))] for byte in range(256)]
        for left, right in merges:
            self._add_merge(left, right)
        special = {token.content for token in self.added if token.special}
        made = {*self._id_of_byte, *(id for _, id in self._merged.values())}
        self._plain = {token.content for token in self.added if self._ids[token.content] not in made}
        self._data = [
            b"" if name in special else name.encode() if name in self._plain else _as_bytes(name)
            for name in self._names
        ]
        self._tokens = tuple(
            name if name in special else data.decode(errors="backslashreplace")
            for name, data in zip(self._names, self._data, strict=True)
        )
        groups = ([token.content for token in self.added if token.normalized == later] for later in (False, True))
        self._patterns = [_any_of(contents) for contents in groups]

    def _check_tokens(self):
        for token in (*self._names, *(token.content for token in self.added)):
            if not isinstance(token, str) or not token:
                raise ValueError(f"a token must be a str that is not empty, got {token!r}")
        for byte in BYTE_ORDER:
            if to_visible(bytes([byte])) not in self._ids:
                raise ValueError(f"the byte {byte}, written {to_visible(bytes([byte]))!r}, is not among the tokens")
        for token in self.added:
            if token.content not in self._ids:
                raise ValueError(f"the added token {token.content!r} is not among the tokens")
            if self.reading.nfc and token.normalized and not unicodedata.is_normalized("NFC", token.content):
                raise ValueError(f"the added token {token.content!r} must be in the form NFC")
        if self.reading.first and self.reading.first not in self._ids:
            raise ValueError(f"the first token {self.reading.first!r} is not among the tokens")

    def _add_merge(self, left, right):
        """The next merge in the order."""
        place, ids = len(self.merges), self._ids
        for part in (left, right, left + right):
            if part not in ids:
                raise ValueError(f"merge {place} joins {left!r} and {right!r}: {part!r} is not a token")
        pair = ids[left], ids[right]
        if pair in self._merged:
            raise ValueError(f"merge {place}, of {left!r} and {right!r}, is there twice")
        self._merged[pair] = place, ids[left + right]
        self.merges.append((left, right))

    @property
    def tokens(self) -> tuple[str, ...]:
        """Every token's bytes as text, with invalid UTF-8 as \\xNN, for display; special tokens by their names."""
        return self._tokens

    def _encode(self, text: str) -> list[int]:
        ids = [self._ids[self.reading.first]] if self.reading.first else []
        for piece, is_token in self._split(text):
            if is_token:
                ids.append(self._ids[piece])
            else:
                ids += super()._encode(piece)
        return ids

    def _split(self, text: str) -> Iterator[tuple[str, bool]]:
        """The pieces of `text`, and whether each is an added token."""
        pieces = [(text, False)]
        for pattern, nfc in zip(self._patterns, (False, self.reading.nfc), strict=True):
            pieces = [
                (part, is_token or odd % 2 == 1)
                for piece, is_token in pieces
                for odd, part in enumerate([piece] if is_token else pattern.split(_as_nfc(piece) if nfc else piece))
                if part
            ]
        yield from pieces

    def _merge(self, data: bytes) -> list[int]:
        name = to_visible(data)
        is_token = self.reading.whole and name in self._ids and name not in self._plain
        return [self._ids[name]] if is_token else super()._merge(data)

    def to_dict(self) -> dict[str, Any]:
        """The tokens in the order of their ids, the merges, the added tokens with their properties, and the reading."""
        return {
            "kind": self.kind,
            "tokens": list(self._names),
            "merges": [f"{left} {right}" for left, right in self.merges],
            "added": [token._asdict() for token in self.added],
            **({} if self.reading == GPT2 else {"reading": self.reading._asdict()}),
        }

    @classmethod
    def from_dict(cls, content: dict[str, Any]) -> "ByteLevelTokenizer":
        """Build a tokenizer from the result of `to_dict`; other content is a ValueError, TypeError or KeyError."""
        for name in ("tokens", "merges", "added"):
            if not isinstance(content[name], list):
                raise TypeError(f"{name} must be a list")
        merges = [split_merge(merge) for merge in content["merges"]]
        reading = _from_fields(Reading, content.get("reading", GPT2._asdict()))
        return cls(content["tokens"], merges, [_from_fields(AddedToken, token) for token in content["added"]], reading)


def _from_fields(kind, content):
    """An AddedToken or a Reading from a dictionary with its fields."""
    if not isinstance(content, dict) or content.keys() != set(kind._fields):
        raise TypeError(f"{NAMES[kind]} must have the fields {', '.join(kind._fields)}, got {content!r}")
    for name, field in kind.__annotations__.items():
        if not isinstance(content[name], field):
            raise TypeError(f"{name} must be {NAMES[field]}, got {content!r}")
    return kind(**content)


def _as_nfc(text):
    return unicodedata.normalize("NFC", text)


def _as_bytes(name):
    """The bytes of a token. A name with a letter that stands for no byte is text."""
    try:
        return from_visible(name)
    except ValueError:
        return name.encode()


def _any_of(contents):
    """A pattern that finds the longest of the texts; `split` keeps what it found, at the odd places."""
    return re.compile(f"({'|'.join(map(re.escape, sorted(contents, key=len, reverse=True))) or '(?!)'})")

"""Byte pairs with somebody else's vocabulary, as GPT-2's (Radford et al. 2019): ids in any order, and added tokens."""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from minitransformer.tokenizers.byte_merging import ByteMergingTokenizer, split_merge
from minitransformer.tokenizers.visible import BYTE_ORDER, from_visible, to_visible


class AddedToken(NamedTuple):
    """A token that is found in a text before the text is split into words, such as <|endoftext|>."""

    content: str
    special: bool = True  # a special token has no text when it is decoded
    normalized: bool = False  # tokens that are not "normalized" are found first


class ByteLevelTokenizer(ByteMergingTokenizer):
    """`tokens` in the order of their ids, with bytes as visible letters (see visible.py): "Ġthe" is " the".

    `merges` are pairs of tokens in the order in which they are applied, such as ("Ġt", "he"). Each of the `added` is
    one of the `tokens`. Unlike our other tokenizers, this one finds its special tokens in a text, as GPT-2's does:
    "<|endoftext|>" becomes one id. Raises ValueError for a token that is there twice or empty, a byte that is no token,
    or a merge that is there twice or of parts that are not tokens.
    """

    kind = "byte_level"

    def __init__(
        self, tokens: Sequence[str], merges: Iterable[tuple[str, str]] = (), added: Iterable[AddedToken] = ()
    ) -> None:
        super().__init__()
        self.added = tuple(added)
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
        self._data = [b"" if name in special else _as_bytes(name) for name in self._names]
        self._tokens = tuple(
            name if name in special else data.decode(errors="backslashreplace")
            for name, data in zip(self._names, self._data, strict=True)
        )
        groups = ([token.content for token in self.added if token.normalized == later] for later in (False, True))
        self._patterns = [_any_of(contents) for contents in groups if contents]

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
        ids: list[int] = []
        for piece, is_token in self._split(text):
            if is_token:
                ids.append(self._ids[piece])
            else:
                ids += super()._encode(piece)
        return ids

    def _split(self, text: str) -> Iterator[tuple[str, bool]]:
        """The pieces of `text`, and whether each is an added token."""
        pieces = [(text, False)]
        for pattern in self._patterns:
            pieces = [
                (part, is_token or odd % 2 == 1)
                for piece, is_token in pieces
                for odd, part in enumerate([piece] if is_token else pattern.split(piece))
                if part
            ]
        yield from pieces

    def to_dict(self) -> dict[str, Any]:
        """The tokens in the order of their ids, the merges, and the added tokens with their properties."""
        return {
            "kind": self.kind,
            "tokens": list(self._names),
            "merges": [f"{left} {right}" for left, right in self.merges],
            "added": [token._asdict() for token in self.added],
        }

    @classmethod
    def from_dict(cls, content: dict[str, Any]) -> "ByteLevelTokenizer":
        """Build a tokenizer from the result of `to_dict`; other content is a ValueError, TypeError or KeyError."""
        for name in ("tokens", "merges", "added"):
            if not isinstance(content[name], list):
                raise TypeError(f"{name} must be a list")
        merges = [split_merge(merge) for merge in content["merges"]]
        return cls(content["tokens"], merges, [_as_added(token) for token in content["added"]])


def _as_added(token):
    """An AddedToken from a dictionary with its fields."""
    if not isinstance(token, dict) or token.keys() != set(AddedToken._fields):
        raise TypeError(f"an added token must have the fields {', '.join(AddedToken._fields)}, got {token!r}")
    if not isinstance(token["special"], bool) or not isinstance(token["normalized"], bool):
        raise TypeError(f"special and normalized must be true or false, got {token!r}")
    return AddedToken(**token)


def _as_bytes(name):
    """The bytes of a token. A name with a letter that stands for no byte is text."""
    try:
        return from_visible(name)
    except ValueError:
        return name.encode()


def _any_of(contents):
    """A pattern that finds the longest of the texts; `split` keeps what it found, at the odd places."""
    return re.compile(f"({'|'.join(map(re.escape, sorted(contents, key=len, reverse=True)))})")

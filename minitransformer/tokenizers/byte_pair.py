"""Byte-pair encoding on bytes: subwords for any text, without an unknown character (Sennrich et al. 2016; the paper,
section 5.1; on bytes as in GPT-2, Radford et al. 2019)."""

import heapq
import itertools
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from minitransformer.tokenizers.base import Tokenizer, check_row, check_text
from minitransformer.tokenizers.byte_pair_training import learn_merges
from minitransformer.tokenizers.visible import BYTE_ORDER, from_visible, to_visible
from minitransformer.tokenizers.words import batches_of_words
from minitransformer.vocabulary import SPECIAL_TOKENS

SMALLEST = len(SPECIAL_TOKENS) + len(BYTE_ORDER)  # the size of a vocabulary without merges
CACHED_WORDS, CACHED_LENGTH = 200_000, 100  # how many encoded words are cached, and how long they may be

NO_TOKEN = -1  # marks the ends of a word, and tokens that were merged


class BytePairTokenizer(Tokenizer):
    """<pad>, <bos>, <eos>, the 256 bytes, then a token for each merge.

    `merges` are pairs of bytes objects in the order in which they are applied, such as (b"l", b"o"), (b"lo", b"w").
    Raises ValueError for a merge whose parts are not tokens yet, or whose result is a token already.
    """

    kind = "byte_pairs"

    def __init__(self, merges: Iterable[tuple[bytes, bytes]] = ()):
        self.merges: list[tuple[bytes, bytes]] = []
        self._data = [b"" for _ in SPECIAL_TOKENS] + [bytes([byte]) for byte in BYTE_ORDER]
        ids = {data: id for id, data in enumerate(self._data) if data}
        self._id_of_byte = [ids[bytes([byte])] for byte in range(256)]
        self._merged: dict[
            tuple[int, int], int
        ] = {}  # (left id, right id) -> id of both; earlier merges have smaller ids
        self._cache: dict[str, list[int]] = {}  # word -> its ids
        for left, right in merges:
            for part in (left, right):
                if part not in ids:
                    raise ValueError(f"merge {len(self.merges)} joins {left!r} and {right!r}: {part!r} is not a token")
            if left + right in ids:
                raise ValueError(f"merge {len(self.merges)} makes {left + right!r}, which is a token already")
            self._merged[ids[left], ids[right]] = ids[left + right] = len(self._data)
            self._data.append(left + right)
            self.merges.append((left, right))
        self._tokens = (
            *SPECIAL_TOKENS,
            *(data.decode(errors="backslashreplace") for data in self._data[len(SPECIAL_TOKENS) :]),
        )

    @classmethod
    def train(cls, text: str, vocab_size: int, min_count: int = 2) -> "BytePairTokenizer":
        """A tokenizer that merges the most frequent pairs of `text`, see `byte_pair_training`.

        It has `vocab_size` tokens, or fewer if no remaining pair occurs `min_count` times. Raises ValueError for a
        vocabulary smaller than the special tokens and the bytes.
        """
        if vocab_size < SMALLEST:
            raise ValueError(
                f"vocab_size must be at least {SMALLEST}, for {len(SPECIAL_TOKENS)} special tokens and 256 bytes, "
                f"got {vocab_size}"
            )
        if min_count < 1:
            raise ValueError(f"min_count must be at least 1, got {min_count}")
        _check_whole_characters(text)
        untrained, merges = cls(), []
        data = untrained._data
        for left, right in learn_merges(text, untrained._id_of_byte, SMALLEST, vocab_size, min_count):
            merges.append((data[left], data[right]))
            data.append(data[left] + data[right])
        return cls(merges)

    @property
    def tokens(self) -> tuple[str, ...]:
        """Every token's bytes as text, with invalid UTF-8 as \\xNN. This is for display, not for decoding."""
        return self._tokens

    def encode(self, text: str) -> np.ndarray:
        """The ids of a text, (length,) int64. Raises ValueError for half a character (a lone surrogate)."""
        _check_whole_characters(text)
        return self._encode(text)

    def encode_bytes(self, data: bytes | bytearray) -> np.ndarray:
        """The ids of any bytes, (length,) int64. For valid UTF-8 they are those of `encode`."""
        if not isinstance(data, bytes | bytearray):
            raise TypeError(f"encode_bytes takes bytes, got {type(data).__name__}")
        return self._encode(data.decode(errors="surrogateescape"))  # an invalid byte becomes a character of its own

    def decode(self, ids: np.ndarray | Sequence[int]) -> str:
        """The text of one row of ids (length,), with U+FFFD for invalid UTF-8. Special tokens have no text."""
        return self.decode_bytes(ids).decode(errors="replace")

    def decode_bytes(self, ids: np.ndarray | Sequence[int]) -> bytes:
        """The bytes of one row of ids (length,), exactly as they were encoded. Special tokens have no bytes."""
        data = self._data
        return b"".join([data[i] for i in check_row(ids, self.vocab_size)])

    def _encode(self, text: str) -> np.ndarray:
        ids: list[int] = []
        cache = self._cache
        for batch in batches_of_words(text, "encode"):
            for word in batch:
                known = cache.get(word)
                ids += self._encode_new_word(word) if known is None else known
        return np.array(ids, dtype=np.int64)

    def _encode_new_word(self, word: str) -> list[int]:
        ids = self._merge(word.encode(errors="surrogateescape"))
        if len(self._cache) >= CACHED_WORDS:
            self._cache.clear()
        if len(word) <= CACHED_LENGTH:
            self._cache[word] = ids
        return ids

    def _merge(self, data: bytes) -> list[int]:
        """The ids of one word: apply the merges, always the earliest possible one, from left to right.

        Uses a linked list of tokens and a heap of the pairs that could be merged, so a word of n bytes takes
        O(n log n) steps.
        """
        # NO_TOKEN marks the end of the word and, as ids[-1], its beginning
        ids = [*(self._id_of_byte[byte] for byte in data), NO_TOKEN]
        following, previous = [*range(1, len(ids)), 0], [*range(-1, len(ids) - 1)]
        merged = self._merged
        heap = [(merged[pair], left) for left, pair in enumerate(itertools.pairwise(ids)) if pair in merged]
        heapq.heapify(heap)
        while heap:
            new, left = heapq.heappop(heap)
            right = following[left]
            if merged.get((ids[left], ids[right])) != new:
                continue  # one of the two is part of another token by now
            after = following[right]
            ids[left], ids[right] = new, NO_TOKEN
            following[left], previous[after] = after, left
            for place in (previous[left], left):
                pair = ids[place], ids[following[place]]
                if pair in merged:
                    heapq.heappush(heap, (merged[pair], place))
        return [id for id in ids if id != NO_TOKEN]

    def to_dict(self) -> dict[str, Any]:
        """The merges, with bytes as visible letters."""
        return {"kind": self.kind, "merges": [f"{to_visible(a)} {to_visible(b)}" for a, b in self.merges]}

    @classmethod
    def from_dict(cls, content: dict[str, Any]) -> "BytePairTokenizer":
        """Build a tokenizer from the result of `to_dict`; other content is a ValueError, TypeError or KeyError."""
        merges = []
        if not isinstance(content["merges"], list):
            raise TypeError("merges must be a list")
        for merge in content["merges"]:
            parts = merge.split(" ") if isinstance(merge, str) else []
            if len(parts) != 2:
                raise ValueError(f"a merge must be two tokens with a space between them, got {merge!r}")
            merges.append((from_visible(parts[0]), from_visible(parts[1])))
        return cls(merges)


def _check_whole_characters(text: str) -> None:
    """ValueError if `text` has a surrogate, which UTF-8 cannot express."""
    check_text(text)
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ValueError(
            f"the text has half a character (the surrogate U+{ord(text[error.start]):04X}) at position {error.start}, "
            "counted from 0; for arbitrary bytes use encode_bytes"
        ) from error

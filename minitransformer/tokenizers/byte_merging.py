"""What tokenizers of byte pairs share: a word's bytes are tokens, and pairs of tokens are merged in a fixed order."""

import codecs
import heapq
import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from minitransformer.tokenizers.base import Tokenizer, check_row, check_text
from minitransformer.tokenizers.words import batches_of_words

CACHED_WORDS, CACHED_LENGTH = 200_000, 100  # how many encoded words are cached, and how long they may be

NO_TOKEN = -1  # marks the ends of a word, and tokens that were merged

Pair = tuple[int, int]  # ids of neighbors


class ByteMergingTokenizer(Tokenizer):
    """A subclass fills the tables in its `__init__`, and `tokens`, `to_dict` and `from_dict`."""

    def __init__(self) -> None:
        self._words = "gpt2"  # the pattern that splits a text
        self._data: list[bytes] = []  # of each token; empty for special tokens
        self._id_of_byte: list[int] = []
        self._merged: dict[Pair, Pair] = {}  # (left id, right id) -> (place in the order, id of both)
        self._cache: dict[str, list[int]] = {}  # word -> its ids

    def encode(self, text: str) -> np.ndarray:
        """The ids of a text, (length,) int64. Raises ValueError for half a character (a lone surrogate)."""
        check_whole_characters(text)
        return np.array(self._encode(text), dtype=np.int64)

    def encode_bytes(self, data: bytes | bytearray) -> np.ndarray:
        """The ids of any bytes, (length,) int64. For valid UTF-8 they are those of `encode`."""
        if not isinstance(data, bytes | bytearray):
            raise TypeError(f"encode_bytes takes bytes, got {type(data).__name__}")
        text = data.decode(errors="surrogateescape")  # an invalid byte becomes a character of its own
        return np.array(self._encode(text), dtype=np.int64)

    def decode(self, ids: np.ndarray | Sequence[int]) -> str:
        """The text of one row of ids (length,), with U+FFFD for invalid UTF-8. Special tokens have no text."""
        return self.decode_bytes(ids).decode(errors="replace")

    def decode_bytes(self, ids: np.ndarray | Sequence[int]) -> bytes:
        """The bytes of one row of ids (length,), exactly as they were encoded. Special tokens have no bytes."""
        data = self._data
        return b"".join([data[i] for i in check_row(ids, self.vocab_size)])

    def count_characters(self, ids: np.ndarray) -> int:
        """The characters that begin in these tokens: a row may end, or begin, in the middle of one."""
        data = np.frombuffer(self.decode_bytes(ids), np.uint8)
        return int(np.count_nonzero(data & 0xC0 != 0x80))  # in UTF-8 all bytes but the first are 10xxxxxx

    def decode_stream(self, ids: Iterable[int]) -> Iterator[str]:
        """The text that each id completes. A character of several tokens comes with the last of them, never in halves.

        Half a character at the end of `ids` is one more text, U+FFFD; joined together they are `decode(ids)`.
        """
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        for id in ids:
            yield decoder.decode(self.decode_bytes([id]))
        if rest := decoder.decode(b"", final=True):
            yield rest

    def _encode(self, text: str) -> list[int]:
        ids: list[int] = []
        cache = self._cache
        for batch in batches_of_words(text, "encode", self._words):
            for word in batch:
                known = cache.get(word)
                ids += self._encode_new_word(word) if known is None else known
        return ids

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
            earliest, left = heapq.heappop(heap)
            right = following[left]
            if merged.get((ids[left], ids[right])) != earliest:
                continue  # one of the two is part of another token by now
            after = following[right]
            ids[left], ids[right] = earliest[1], NO_TOKEN
            following[left], previous[after] = after, left
            for place in (previous[left], left):
                pair = ids[place], ids[following[place]]
                if pair in merged:
                    heapq.heappush(heap, (merged[pair], place))
        return [id for id in ids if id != NO_TOKEN]


def check_whole_characters(text: str) -> None:
    """ValueError if `text` has a surrogate, which UTF-8 cannot express."""
    check_text(text)
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ValueError(
            f"the text has half a character (the surrogate U+{ord(text[error.start]):04X}) at position {error.start}, "
            "counted from 0; for arbitrary bytes use encode_bytes"
        ) from error


def split_merge(merge: Any) -> tuple[str, str]:
    """ "Ġt he" -> ("Ġt", "he"). Raises ValueError for anything else."""
    parts = merge.split(" ") if isinstance(merge, str) else []
    if len(parts) != 2:
        raise ValueError(f"a merge must be two tokens with a space between them, got {merge!r}")
    return parts[0], parts[1]

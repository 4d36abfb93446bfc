"""Byte-pair encoding on bytes: subwords for any text, without an unknown character (Sennrich et al. 2016; the paper,
section 5.1; on bytes as in GPT-2, Radford et al. 2019)."""

import heapq
import itertools

import numpy as np

from minitransformer.tokenizers.base import Tokenizer, check_row, check_text
from minitransformer.tokenizers.byte_pair_training import learn_merges
from minitransformer.tokenizers.visible import BYTE_ORDER, from_visible, to_visible
from minitransformer.tokenizers.words import batches_of_words
from minitransformer.vocabulary import SPECIAL_TOKENS

SMALLEST = len(SPECIAL_TOKENS) + len(BYTE_ORDER)  # a vocabulary without a merge
CACHED_WORDS, CACHED_LENGTH = 200_000, 100  # how many words are remembered with their ids, and how long ones


class BytePairTokenizer(Tokenizer):
    """<pad>, <bos>, <eos>, the 256 bytes, then a token for each merge.

    `merges` are pairs of bytes objects in the order in which they are applied, such as (b"l", b"o"), (b"lo", b"w").
    Raises ValueError for a merge whose parts are no tokens yet, or whose result is one already.
    """

    kind = "byte_pairs"

    def __init__(self, merges=()):
        self.merges = []
        self._data = [b"" for _ in SPECIAL_TOKENS] + [bytes([byte]) for byte in BYTE_ORDER]
        ids = {data: id for id, data in enumerate(self._data) if data}
        self._id_of_byte = [ids[bytes([byte])] for byte in range(256)]
        self._merged = {}  # (left id, right id) -> id of both; a smaller id is an earlier merge
        self._cache = {}  # word -> its ids
        for left, right in merges:
            for part in (left, right):
                if part not in ids:
                    raise ValueError(f"merge {len(self.merges)} joins {left!r} and {right!r}, but {part!r} is no token")
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
    def train(cls, text, vocab_size, min_count=2):
        """A tokenizer with the merges that pay most on `text`, see `byte_pair_training`.

        It has `vocab_size` tokens, or fewer if no pair is left that occurs `min_count` times. Raises ValueError for a
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
        bare, merges = cls(), []
        data = bare._data
        for left, right in learn_merges(text, bare._id_of_byte, SMALLEST, vocab_size, min_count):
            merges.append((data[left], data[right]))
            data.append(data[left] + data[right])
        return cls(merges)

    @property
    def tokens(self):
        """Every token's bytes as text, with what is no UTF-8 as \\xNN: to be shown, not to be decoded."""
        return self._tokens

    def encode(self, text):
        """The ids of a text -> (length,) int64. Raises ValueError for half a character (a lone surrogate)."""
        _check_whole_characters(text)
        return self._encode(text)

    def encode_bytes(self, data):
        """The ids of any bytes -> (length,) int64; those of `encode` if the bytes are UTF-8."""
        if not isinstance(data, bytes | bytearray):
            raise TypeError(f"encode_bytes takes bytes, got {type(data).__name__}")
        return self._encode(data.decode(errors="surrogateescape"))  # a bad byte becomes a character of its own

    def decode(self, ids):
        """The text of a row of ids (length,), with U+FFFD for what is no UTF-8; special tokens have none."""
        return self.decode_bytes(ids).decode(errors="replace")

    def decode_bytes(self, ids):
        """The bytes of a row of ids (length,), exactly as they were encoded; special tokens have none."""
        data = self._data
        return b"".join([data[i] for i in check_row(ids, self.vocab_size)])

    def _encode(self, text):
        ids, cache = [], self._cache
        for batch in batches_of_words(text, "encode"):
            for word in batch:
                known = cache.get(word)
                ids += self._encode_new_word(word) if known is None else known
        return np.array(ids, dtype=np.int64)

    def _encode_new_word(self, word):
        ids = self._merge(word.encode(errors="surrogateescape"))
        if len(self._cache) >= CACHED_WORDS:
            self._cache.clear()
        if len(word) <= CACHED_LENGTH:
            self._cache[word] = ids
        return ids

    def _merge(self, data):
        """Apply the merges to one word: always the earliest one that there is, from left to right -> list of ids.

        A chain of tokens and a heap of the pairs that could be merged, so that a word of n bytes takes n log n steps.
        """
        ids = [*(self._id_of_byte[byte] for byte in data), None]  # None ends the word and, as ids[-1], begins it
        following, previous = [*range(1, len(ids)), 0], [*range(-1, len(ids) - 1)]
        merged = self._merged
        heap = [(merged[pair], left) for left, pair in enumerate(itertools.pairwise(ids)) if pair in merged]
        heapq.heapify(heap)
        while heap:
            new, left = heapq.heappop(heap)
            right = following[left]
            if merged.get((ids[left], ids[right])) != new:
                continue  # one of the two has gone into another token
            after = following[right]
            ids[left], ids[right] = new, None
            following[left], previous[after] = after, left
            for place in (previous[left], left):
                pair = ids[place], ids[following[place]]
                if pair in merged:
                    heapq.heappush(heap, (merged[pair], place))
        return [id for id in ids if id is not None]

    def to_dict(self):
        """The merges, with bytes as visible letters."""
        return {"kind": self.kind, "merges": [f"{to_visible(a)} {to_visible(b)}" for a, b in self.merges]}

    @classmethod
    def from_dict(cls, content):
        """The tokenizer that `to_dict` gave. Raises ValueError, TypeError or KeyError for what it cannot have given."""
        merges = []
        if not isinstance(content["merges"], list):
            raise TypeError("merges must be a list")
        for merge in content["merges"]:
            parts = merge.split(" ") if isinstance(merge, str) else []
            if len(parts) != 2:
                raise ValueError(f"a merge must be two tokens with a space between them, got {merge!r}")
            merges.append(tuple(map(from_visible, parts)))
        return cls(merges)


def _check_whole_characters(text):
    """ValueError if `text` has a surrogate, which no UTF-8 can express."""
    check_text(text)
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ValueError(
            f"the text has half a character (the surrogate U+{ord(text[error.start]):04X}) at position {error.start}, "
            "counted from 0; encode_bytes takes any bytes"
        ) from error

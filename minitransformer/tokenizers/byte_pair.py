"""Byte-pair encoding on bytes: subwords for any text, without an unknown character (Sennrich et al. 2016; the paper,
section 5.1; on bytes as in GPT-2, Radford et al. 2019)."""

from collections.abc import Iterable
from typing import Any

from minitransformer.tokenizers.byte_merging import ByteMergingTokenizer, check_whole_characters, split_merge
from minitransformer.tokenizers.byte_pair_training import learn_merges
from minitransformer.tokenizers.visible import BYTE_ORDER, from_visible, to_visible
from minitransformer.vocabulary import SPECIAL_TOKENS

SMALLEST = len(SPECIAL_TOKENS) + len(BYTE_ORDER)  # the size of a vocabulary without merges


class BytePairTokenizer(ByteMergingTokenizer):
    """<pad>, <bos>, <eos>, the 256 bytes, then a token for each merge.

    `merges` are pairs of bytes objects in the order in which they are applied, such as (b"l", b"o"), (b"lo", b"w").
    Raises ValueError for a merge whose parts are not tokens yet, or whose result is a token already.
    """

    kind = "byte_pairs"

    def __init__(self, merges: Iterable[tuple[bytes, bytes]] = ()):
        super().__init__()
        self.merges: list[tuple[bytes, bytes]] = []
        self._data = [b"" for _ in SPECIAL_TOKENS] + [bytes([byte]) for byte in BYTE_ORDER]
        ids = {data: id for id, data in enumerate(self._data) if data}
        self._id_of_byte = [ids[bytes([byte])] for byte in range(256)]
        for left, right in merges:
            for part in (left, right):
                if part not in ids:
                    raise ValueError(f"merge {len(self.merges)} joins {left!r} and {right!r}: {part!r} is not a token")
            if left + right in ids:
                raise ValueError(f"merge {len(self.merges)} makes {left + right!r}, which is a token already")
            new = ids[left + right] = len(self._data)
            self._merged[ids[left], ids[right]] = len(self.merges), new
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
        check_whole_characters(text)
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
            left, right = split_merge(merge)
            merges.append((from_visible(left), from_visible(right)))
        return cls(merges)

"""Sentence pairs as batches of ids: pairs of about the same length together, as many as a number of tokens allows."""

import os
import re
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from minitransformer.checks import check_integer
from minitransformer.data.pairs import Pair, PairCorpus, load_pairs
from minitransformer.data.tasks import Batch, pad_rows
from minitransformer.decoding.search.translate import encode_masked
from minitransformer.tokenizers import BytePairTokenizer, Tokenizer
from minitransformer.tokenizers.byte_pair import SMALLEST
from minitransformer.vocabulary import BOS, EOS, PAD

MAX_LEN = 256  # tokens: longer sentences are left out


def shared_tokenizer(corpus: PairCorpus, vocab_size: int | None = None) -> BytePairTokenizer:
    """Byte pairs of both languages, as many as fit the text if there is no `vocab_size`.

    No merge has a digit: each digit is a token, so that "422", which was never seen, is made of what was.
    """
    text = "\n".join(sentence for pair in corpus.train for sentence in pair)
    return BytePairTokenizer.train(re.sub(r" ?\d+", "\n", text), vocab_size or fitting_vocab_size(len(text)))


def fitting_vocab_size(characters: int) -> int:
    """A merge for every 2,000 characters of the text, at most 4,000 tokens."""
    return min(4000, SMALLEST + characters // 2000)


class EncodedPairs:
    """Pairs of sentences as ids; those longer than `max_len` tokens on either side, eos included, are left out."""

    def __init__(self, pairs: Sequence[Pair], tokenizer: Tokenizer, max_len: int) -> None:
        end = np.array([EOS])
        sides = [(encode_masked(tokenizer, source), tokenizer.encode(target)) for source, target in pairs]
        encoded = [tuple(np.concatenate((ids, end)) for ids in both) for both in sides]
        fits = [max(map(len, both)) <= max_len for both in encoded]
        self.pairs = [pair for pair, kept in zip(pairs, fits, strict=True) if kept]
        self.ids = [both for both, kept in zip(encoded, fits, strict=True) if kept]
        self.left_out = len(pairs) - len(self.pairs)
        self.lengths = np.array([[len(ids) for ids in both] for both in self.ids]).reshape(-1, 2)  # (N, 2)

    def __len__(self) -> int:
        return len(self.pairs)

    def batch(self, rows: Sequence[int] | np.ndarray) -> Batch:
        """The pairs `rows` as a batch, padded to the longest source and the longest target."""
        source, target = (
            pad_rows([self.ids[row][side] for row in rows], int(self.lengths[rows, side].max())) for side in (0, 1)
        )
        target_in = np.concatenate([np.full((len(target), 1), BOS), target[:, :-1]], axis=1)
        return Batch(source, np.where(target_in == EOS, PAD, target_in), target)

    def batches(self, max_tokens: int, rng: np.random.Generator | None = None) -> list[np.ndarray]:
        """All pairs in batches of at most `max_tokens` tokens of each side, padding included -> the rows of each.

        Pairs are sorted by length, of the target and then of the source, so that each batch has little padding (section
        5.1). With `rng` the order of equally long pairs and that of the batches is random. A pair that is longer than
        `max_tokens` is a batch of its own.
        """
        rows = np.arange(len(self)) if rng is None else rng.permutation(len(self))
        rows = rows[np.lexsort(self.lengths[rows].T)]
        cuts, start, longest = [], 0, 0
        for place, length in enumerate(self.lengths[rows].max(axis=1)):
            longest = max(longest, length)
            if place > start and (place + 1 - start) * longest > max_tokens:
                cuts.append(place)
                start, longest = place, length
        batches = np.split(rows, cuts)
        return batches if rng is None else [batches[i] for i in rng.permutation(len(batches))]


class TranslationTask:
    """Batches of sentence pairs, padded, with bos and eos, in a new random order in every epoch.

    `from_pairs` makes one of a file, or of two lists. Raises ValueError if no training, validation or test pair has at
    most `max_len` tokens on both sides.
    """

    def __init__(self, corpus: PairCorpus, tokenizer: Tokenizer, max_len: int) -> None:
        check_integer("max_len", max_len, least=2)
        self.tokenizer, self.sha256 = tokenizer, corpus.sha256
        self.train, self.validation, self.test = (EncodedPairs(part, tokenizer, max_len) for part in corpus)
        for name, part in (("train", self.train), ("validate", self.validation), ("test", self.test)):
            if not len(part):
                raise ValueError(f"no pair to {name} on has at most {max_len} tokens on both sides")

    @classmethod
    def from_pairs(cls, pairs: str | os.PathLike | Iterable[Pair], vocab_size: int | None = None) -> "TranslationTask":
        """The task of a file of pairs, or of pairs such as zip(sources, targets, strict=True).

        See `load_pairs` for what is held out, and for its errors, and `shared_tokenizer` for the tokens.
        """
        corpus = load_pairs(pairs)
        return cls(corpus, shared_tokenizer(corpus, vocab_size), MAX_LEN)

    def epoch(self, rng: np.random.Generator, size: int) -> Iterator[Batch]:
        """All training pairs once, in random batches of at most `size` tokens on each side."""
        check_integer("size", size, least=1)
        for rows in self.train.batches(size, rng):
            yield self.train.batch(rows)

"""Sentence pairs as batches of ids: pairs of about the same length together, as many as a number of tokens allows."""

from collections.abc import Iterator, Sequence

import numpy as np

from minitransformer.checks import check_integer
from minitransformer.data.pairs import Pair, PairCorpus
from minitransformer.data.tasks import Batch, pad_rows
from minitransformer.tokenizers import Tokenizer
from minitransformer.vocabulary import BOS, EOS, PAD


class EncodedPairs:
    """Pairs of sentences as ids; those longer than `max_len` tokens on either side, eos included, are left out."""

    def __init__(self, pairs: Sequence[Pair], tokenizer: Tokenizer, max_len: int) -> None:
        end = np.array([EOS])
        encoded = [tuple(np.concatenate((tokenizer.encode(text), end)) for text in pair) for pair in pairs]
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
    """Batches of sentence pairs, in a new random order in every epoch.

    Raises ValueError if no training, validation or test pair has at most `max_len` tokens on both sides.
    """

    def __init__(self, corpus: PairCorpus, tokenizer: Tokenizer, max_len: int) -> None:
        check_integer("max_len", max_len, least=2)
        self.tokenizer, self.sha256 = tokenizer, corpus.sha256
        self.train, self.validation, self.test = (EncodedPairs(part, tokenizer, max_len) for part in corpus)
        for name, part in (("train", self.train), ("validate", self.validation), ("test", self.test)):
            if not len(part):
                raise ValueError(f"no pair to {name} on has at most {max_len} tokens on both sides")

    def epoch(self, rng: np.random.Generator, size: int) -> Iterator[Batch]:
        """All training pairs once, in random batches of at most `size` tokens on each side."""
        check_integer("size", size, least=1)
        for rows in self.train.batches(size, rng):
            yield self.train.batch(rows)

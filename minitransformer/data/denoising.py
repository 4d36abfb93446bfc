"""Text that was broken on purpose, and the text as it was: what BART learns from (Lewis et al. 2019, section 2.2)."""

import re
from collections.abc import Iterator
from textwrap import wrap

import numpy as np

from minitransformer.data.pairs import PairCorpus, tidy
from minitransformer.data.tasks import Batch, pad_rows
from minitransformer.data.text import Corpus
from minitransformer.data.translation import MAX_LEN, TranslationTask
from minitransformer.decoding.search.translate import MASK
from minitransformer.tokenizers import Tokenizer
from minitransformer.vocabulary import BOS, EOS

NOISES = ("both", "order", "infilling")
HIDDEN, SPAN = 0.3, 3.0  # share of the tokens that is hidden; mean length of a span


def infill(rng: np.random.Generator, ids: np.ndarray) -> np.ndarray:
    """ids (T,) with 30 % of them hidden, in spans that each become one mask, which is bos: no source has it otherwise.

    The lengths are drawn from a Poisson distribution with mean 3 until their sum is 0.3 T, rounded; the last is cut off
    there. A span of length 0 hides nothing and inserts a mask. At most as many spans are drawn as tokens are to be
    hidden. Every order of the spans and of the tokens that stay is equally likely, so two masks may be neighbors.
    """
    hidden = round(HIDDEN * len(ids))
    ends = np.minimum(rng.poisson(SPAN, hidden).cumsum(), hidden)
    lengths = np.diff(ends[: np.searchsorted(ends, hidden) + 1], prepend=0)
    is_mask = rng.permutation(len(ids) - lengths.sum() + len(lengths)) < len(lengths)
    sizes = np.ones(len(is_mask), int)
    sizes[is_mask] = rng.permutation(lengths)  # the one that was cut off may be anywhere
    return np.where(is_mask, BOS, np.append(ids, EOS)[sizes.cumsum() - sizes])


def passages(text: str, length: int) -> list[list[str]]:
    """The sentences of `text`, which end with . ! ? : or an empty line, as many together as fit into `length`."""
    found: list[list[str]] = [[]]
    for sentence in re.split(r"(?<=[.!?:])\s+|\n\s*\n", text):
        for part in wrap(tidy(sentence), length, break_on_hyphens=False):  # longer ones are cut
            if len(" ".join([*found[-1], part])) > length:
                found.append([])
            found[-1].append(part)
    return [sentences for sentences in found if sentences]


class DenoisingTask(TranslationTask):
    """Passages of at most `length` characters; training breaks them again in every epoch, the test once."""

    def __init__(self, corpus: Corpus, tokenizer: Tokenizer, length: int, noise: str) -> None:
        self.tokenizer, self.noise, rng = tokenizer, noise, np.random.default_rng(0)
        pairs, tested = ([("\n".join(part), " ".join(part)) for part in passages(text, length)] for text in corpus)
        broken = (self.broken(rng, lines) for lines, _ in tested)
        parts = ([tokenizer.decode(part) for part in np.split(ids, np.flatnonzero(ids == BOS))] for ids in broken)
        tested = [(MASK.join(texts), target) for texts, (_, target) in zip(parts, tested, strict=True)]
        super().__init__(PairCorpus(pairs, tested[:20], tested), tokenizer, MAX_LEN)

    def broken(self, rng: np.random.Generator, lines: str) -> np.ndarray:
        """The ids of a passage, with one sentence in each of its `lines`, after the noise."""
        sentences = lines.split("\n") if self.noise == "infilling" else rng.permutation(lines.split("\n"))
        ids = self.tokenizer.encode(" ".join(sentences))
        return ids if self.noise == "order" else infill(rng, ids)

    def epoch(self, rng: np.random.Generator, size: int) -> Iterator[Batch]:
        """All training passages once, in random batches of about `size` tokens on each side."""
        for rows in self.train.batches(size, rng):
            sources = [np.append(self.broken(rng, self.train.pairs[row][0])[: MAX_LEN - 1], EOS) for row in rows]
            yield self.train.batch(rows)._replace(source=pad_rows(sources, max(map(len, sources))))

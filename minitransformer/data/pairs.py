"""Pairs of sentences: a source and its translation, from a file of tab-separated pairs."""

import hashlib
import os
import unicodedata
from collections.abc import Iterable
from typing import NamedTuple

from minitransformer.system.files import read_text

Pair = tuple[str, str]  # a sentence and its translation

TEST_SHARE, VALIDATION_SHARE = 0.03, 0.01  # of the sources in a file


class PairCorpus(NamedTuple):
    """Pairs to train on, pairs that show during training how well it goes, and pairs for the final test."""

    train: list[Pair]
    validation: list[Pair]
    test: list[Pair]

    @property
    def sha256(self) -> str:
        """The hash of all pairs in their order, in hexadecimal digits."""
        digest = hashlib.sha256()
        for part in self:
            for pair in part:
                digest.update("\t".join(pair).encode() + b"\n")
            digest.update(b"\n")
        return digest.hexdigest()


def load_pairs(pairs: str | os.PathLike | Iterable[Pair], swap: bool = False) -> PairCorpus:
    """Pairs, or those in a file at this path (see `read_pairs`). A hash of its source decides whether one is held out.

    With `swap`, the second column is the source. Pairs with the same source are on the same side, and a pair that is
    added moves no other; where there are so few that none would be held out, one source is. Repeated pairs are left
    out. Raises what `read_pairs` raises, and ValueError for fewer than three sources.
    """
    if isinstance(pairs, str | os.PathLike):
        found, there = read_pairs(pairs), f"{pairs} has"
    else:
        found, there = list(dict.fromkeys((tidy(first), tidy(second)) for first, second in pairs)), "there are"
    parts: dict[str, list[Pair]] = {"train": [], "validation": [], "test": []}
    for first, second in found:
        pair = (second, first) if swap else (first, second)
        share = place(pair)
        held_out = "test" if share < TEST_SHARE else "validation" if share < TEST_SHARE + VALIDATION_SHARE else "train"
        parts[held_out].append(pair)
    for name in ("test", "validation"):
        if not parts[name] and parts["train"]:
            least = min(parts["train"], key=place)[0]
            parts[name] = [pair for pair in parts["train"] if pair[0] == least]
            parts["train"] = [pair for pair in parts["train"] if pair[0] != least]
    if not all(parts.values()):
        raise ValueError(f"{there} too few pairs to train on, to validate on and to test on, got {len(found)}")
    return PairCorpus(**parts)


def place(pair: Pair) -> float:
    """A number from 0 to 1 that a hash of the source gives."""
    return int(hashlib.sha256(pair[0].encode()).hexdigest()[:8], 16) / 2**32


def read_pairs(path: str | os.PathLike, labelled: str | None = None) -> list[Pair]:
    """The pairs in a file with one pair in each line: a sentence, a tab, its translation -> in the file's order.

    Columns after the second are ignored, as in the pairs for Anki, where the third names the authors. Tatoeba's own
    export has four columns, with a number before each sentence; the numbers are ignored. The file is UTF-8, see
    `read_text`. Empty lines and repeated pairs are left out. Quotes have no special meaning. Characters are composed
    (Unicode's NFC), so that "ä" is the same however it was typed, and white space becomes single spaces. Raises
    ValueError, naming the path and the line, for a line without two sentences, and the errors of `read_text`.
    `labelled`, what a line should be, is for a sentence and its label: then there are no other columns.
    """
    pairs: dict[Pair, None] = {}
    for number, line in enumerate(read_text(path).split("\n"), start=1):  # splitlines would also split at U+2028
        if not line.strip():
            continue
        columns = line.split("\t")
        if labelled is None and len(columns) == 4 and columns[0].isdecimal() and columns[2].isdecimal():
            columns = columns[1::2]
        source, target = map(tidy, (*columns, "")[:2])
        if not source or not target or (labelled and len(columns) > 2):
            expected = labelled or "a sentence, a tab and its translation were expected"
            raise ValueError(f"{path}, line {number}: {expected}")
        pairs[source, target] = None
    return list(pairs)


def tidy(text: str) -> str:
    """`text` with composed characters and single spaces, without white space at its ends."""
    return " ".join(unicodedata.normalize("NFC", text).split())


def without_sources_of(pairs: Iterable[Pair], others: Iterable[Pair]) -> list[Pair]:
    """Those of `pairs` whose source is not among the sources of `others`."""
    known = {source for source, _ in others}
    return [pair for pair in pairs if pair[0] not in known]

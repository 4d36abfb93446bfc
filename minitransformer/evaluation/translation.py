"""How good translations are: BLEU, the measure of the paper (section 6.1), and chrF, with the library sacrebleu."""

import importlib.util
import json
import math
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

RESAMPLED = 1000  # times the sentences are drawn again, for the interval
BUCKETS = 5  # groups of sources, from the shortest to the longest


class Scores(NamedTuple):
    """What sacrebleu says, from 0 to 100. `interval` is half of BLEU's 95 % interval, and NaN for one sentence."""

    bleu: float
    interval: float
    chrf: float
    signature: str  # of BLEU: with it, anybody can compute the same number


class LengthScore(NamedTuple):
    """BLEU of the sources with so many words."""

    shortest: int
    longest: int
    sentences: int
    bleu: float

    @property
    def words(self) -> str:
        """Such as "6 to 9", or "6"."""
        return str(self.shortest) if self.shortest == self.longest else f"{self.shortest} to {self.longest}"


def has_sacrebleu() -> bool:
    """Whether the library is installed."""
    return importlib.util.find_spec("sacrebleu") is not None


def score(translations: Sequence[str], references: Sequence[str]) -> Scores:
    """BLEU and chrF of the translations of a whole test set; the interval comes from drawing the sentences again."""
    from sacrebleu.metrics import BLEU, CHRF

    metric = BLEU()
    bleu = metric.corpus_score(translations, [references], n_bootstrap=RESAMPLED)
    signature = str(metric.get_signature())
    interval = json.loads(bleu.format(signature=signature, is_json=True)).get("confidence_var", math.nan)
    return Scores(bleu.score, interval, CHRF().corpus_score(translations, [references]).score, signature)


def bleu_by_length(
    sources: Sequence[str], translations: Sequence[str], references: Sequence[str], buckets: int = BUCKETS
) -> list[LengthScore]:
    """BLEU for groups of about as many sentences each, by the number of words of the source."""
    from sacrebleu.metrics import BLEU

    words = [len(source.split()) for source in sources]
    order = sorted(range(len(sources)), key=lambda i: words[i])
    groups: list[LengthScore] = []
    start = 0
    for bucket in range(1, buckets + 1):
        end = max(start, len(order) * bucket // buckets)
        while 0 < end < len(order) and words[order[end]] == words[order[end - 1]]:
            end += 1  # sources of equal length stay together
        rows = order[start:end]
        if rows:
            bleu = BLEU().corpus_score([translations[i] for i in rows], [[references[i] for i in rows]]).score
            groups.append(LengthScore(words[rows[0]], words[rows[-1]], len(rows), bleu))
        start = end
    return groups


def frequent_words(sources: Sequence[str], training_targets: Sequence[str]) -> list[str]:
    """The poorest translator of all: for each source as many words as it has, always the most frequent of the targets.

    What it scores is what BLEU gives for nothing.
    """
    counts = Counter(word for target in training_targets for word in target.split())
    ranked = [word for word, _ in counts.most_common(max(len(source.split()) for source in sources))]
    return [" ".join(ranked[: len(source.split())]) for source in sources]

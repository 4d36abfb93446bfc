"""The verdicts on random layers: `python -m tests.gradcheck.thousand` prints how often each verdict is right.

Half of the layers are right, half are wrong, and a third each are analytic, kinked and mixed. `--first` and `--count`
choose the seeds; every wrong verdict is printed with its layer and its report.
"""

import argparse
import time
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from minitransformer.gradcheck import Report, check_layer
from minitransformer.gradcheck.report import CANNOT_TELL, OK, WRONG
from tests.gradcheck.random_layers import KINDS, SEED, Case, draw_case


class Verdict(NamedTuple):
    """What the checker says of a random layer."""

    seed: int
    right: bool
    case: Case
    report: Report
    seconds: float

    @property
    def false(self) -> bool:
        """Whether a right layer is called WRONG, or a wrong one OK."""
        return self.report.verdict == (WRONG if self.right else OK)


def verdicts(seeds: range) -> Iterator[Verdict]:
    """The verdicts on one right and one wrong layer for each seed."""
    for seed in seeds:
        for right in (True, False):
            case = draw_case(seed, right)
            start = time.perf_counter()
            with np.errstate(all="ignore"):  # some layers are drawn with inputs for which exp overflows
                report = check_layer(case.layer, case.x, dropout_seed=SEED)
            yield Verdict(seed, right, case, report, time.perf_counter() - start)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--count", type=int, default=500, help="how many right, and how many wrong layers")
    parser.add_argument("--verbose", action="store_true", help="print also where the checker cannot tell")
    arguments = parser.parse_args()
    counts: Counter = Counter()
    seconds = []
    for found in verdicts(range(arguments.first, arguments.first + arguments.count)):
        counts[found.case.kind, found.right, found.report.verdict] += 1
        seconds.append(found.seconds)
        if found.false or (arguments.verbose and found.report.verdict == CANNOT_TELL):
            label = "right" if found.right else f"wrong ({found.case.mistake})"
            print(f"seed {found.seed}, {label}: {found.case.text}\n{found.report}\n")
    print(f"{'':20}" + "".join(f"{verdict:>14}" for verdict in (OK, WRONG, CANNOT_TELL)))
    for right in (True, False):
        for kind in KINDS:
            numbers = "".join(f"{counts[kind, right, verdict]:14d}" for verdict in (OK, WRONG, CANNOT_TELL))
            print(f"{'right' if right else 'wrong':8}{kind:12}{numbers}")
    print(f"{len(seconds)} layers, {sum(seconds):.0f} s, at most {max(seconds):.1f} s for one")


if __name__ == "__main__":
    main()

"""Try damaged files, as many as you like, and count how the cases end.

    python -m tests.refusals                    2,000 cases
    python -m tests.refusals --cases 100000     two to six minutes

A case is known by its kind and its number: `python -m tests.refusals --only checkpoints --first 1234 --cases 1` tries
one again. The exit status is 1 if any case has failed.
"""

import argparse
import collections
import sys
import tempfile
from pathlib import Path

import numpy as np

from tests.refusals import drawn_files as files
from tests.refusals.ending import REFUSED, SUCCESS, ending_of

TARGETS = (files.checkpoints, files.forged_checkpoints, files.texts, files.tokenizers, files.pairs)
TARGETS += (files.huggingface_models, files.huggingface_tokenizers)


def failures(target, numbers, good):
    """Try the cases with these numbers -> (how many had each ending, {number: what it failed with})."""
    found = {number: ending_of(target, np.random.default_rng([TARGETS.index(target), number]), good)
             for number in numbers}  # fmt: skip
    failed = {number: repr(ending) for number, ending in found.items() if ending not in (SUCCESS, REFUSED)}
    return collections.Counter(ending for number, ending in found.items() if number not in failed), failed


def main():
    """Try, print how each kind ended -> exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=2000, help="in all (default 2,000)")
    parser.add_argument("--first", type=int, default=0, help="number of the first of each kind (default 0)")
    parser.add_argument("--only", choices=[target.__name__ for target in TARGETS], help="of this kind alone")
    options = parser.parse_args()
    targets = [target for target in TARGETS if options.only in (None, target.__name__)]
    failed = {}
    with tempfile.TemporaryDirectory() as folder:
        good = files.Good(Path(folder))
        for target in targets:
            numbers = range(options.first, options.first + -(-options.cases // len(targets)))
            endings, failed[target.__name__] = failures(target, numbers, good)
            print(f"{target.__name__:<22} {dict(endings)} {failed[target.__name__]}")
    return 1 if any(failed.values()) else 0


if __name__ == "__main__":
    sys.exit(main())

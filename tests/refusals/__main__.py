"""Try made-up input of every kind, as much of it as you like, and count how the cases end.

    python -m tests.refusals                    2,000 cases
    python -m tests.refusals --cases 100000     two to six minutes

A case is known by its kind and its number: `python -m tests.refusals --only checkpoints --first 1234 --cases 1` tries
one again. The exit status is 1 if any case has failed.
"""

import argparse
import collections
import resource
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from minitransformer.system.progress import tqdm
from tests.refusals import drawn_files as files
from tests.refusals import drawn_inputs as inputs
from tests.refusals.ending import REFUSED, SUCCESS, ending_of

TARGETS = (files.checkpoints, files.forged_checkpoints, files.texts, files.tokenizers)
TARGETS += (
    inputs.ids,
    inputs.masks,
    inputs.attentions,
    inputs.configurations,
    inputs.command_lines,
)
TARGETS += (files.huggingface_models, files.huggingface_tokenizers, files.pairs)
MEMORY = 16 * 2**30  # bytes of address space: a case that asks for more gets a MemoryError, and not the machine


def main():
    """Try, count, print the table -> exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=2000, help="in all (default 2,000)")
    parser.add_argument("--first", type=int, default=0, help="number of the first of each kind (default 0)")
    parser.add_argument("--only", choices=[target.__name__ for target in TARGETS], help="of this kind alone")
    arguments = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    targets = [target for target in TARGETS if arguments.only in (None, target.__name__)]
    counts, started = {}, time.perf_counter()
    with tempfile.TemporaryDirectory() as folder, tqdm(total=arguments.cases, unit="case", disable=None) as bar:
        good = files.Good(Path(folder))
        for place, target in enumerate(targets):
            counts[target.__name__] = endings = collections.Counter()
            share = arguments.cases // len(targets) + (place < arguments.cases % len(targets))
            for number in range(arguments.first, arguments.first + share):
                endings[kind_of(target, number, good)] += 1
                bar.update()
    failed = show(counts)
    print(f"{arguments.cases:,} cases in {time.perf_counter() - started:.0f} s: {failed} failures")
    return 1 if failed else 0


def kind_of(target, number, good):
    """Try a case -> "success", "refused", or the class of what it failed with, which is printed."""
    ending = ending_of(target, np.random.default_rng([TARGETS.index(target), number]), good)
    if ending in (SUCCESS, REFUSED):
        return ending
    tqdm.write(f"{target.__name__} {number}: {type(ending).__name__}: {ending}")
    return type(ending).__name__


def show(counts):
    """Print the table -> how many cases have failed."""
    print(f"{'kind':<22} {'cases':>8} {'successes':>10} {'refusals':>9} {'failures':>9}")
    total = sum(counts.values(), collections.Counter())
    for name, endings in [*counts.items(), ("all", total)]:
        failures = {kind: count for kind, count in endings.items() if kind not in (SUCCESS, REFUSED)}
        kinds = ", ".join(f"{kind} {count}" for kind, count in failures.items())
        numbers = f"{endings[SUCCESS]:>10,} {endings[REFUSED]:>9,} {sum(failures.values()):>9,}"
        print(f"{name:<22} {sum(endings.values()):>8,} {numbers}  {kinds}".rstrip())
    return sum(count for kind, count in total.items() if kind not in (SUCCESS, REFUSED))


if __name__ == "__main__":
    sys.exit(main())

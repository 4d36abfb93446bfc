"""Change every function of a module in every small way, and see whether the tests notice.

    python -m tests.mutation functional.gelu             one function, and its backward
    python -m tests.mutation functional.softmax          one file: about a minute
    python -m tests.mutation functional layers           whole folders: docs/proof.md has the times
    python -m tests.mutation layers --sample 50          50 of its mutants, drawn at random
    python -m tests.mutation functional.softmax --again  only what was not killed the last time

Parts of a name may be left out, except for the last, while it is the only one: gelu, Linear.

A mutant is the library with one change: + became -, a statement is missing, a condition is always true. It is planted
in a process of its own, and the checks that run its line are tried one after another until one alarms. The outcome is

    killed       a check alarms, and does not alarm without the change
    survived     no check alarms within the effort. Write a test that notices it; delete the code if nothing needs it;
                 or, if no test can ever notice it, list it in tests/mutation/equivalent.json, with the reason
    timed out    a check did not end within its limit. This does not count as killed

and the score is killed / (mutants - equivalent). The first run measures which lines each check runs, and how long it
takes: several minutes. The result is kept in runs/mutation/measured until the package or the tests change. What was not
killed is listed in runs/mutation/NAME.txt, each with the line that equivalent.json would need. The exit status is 1 if
any mutant survived.
"""

import argparse
import signal
import sys
import time

import numpy as np

from minitransformer.system.progress import tqdm
from tests.mutation import measuring, report
from tests.mutation.judging import SURVIVED, Judge
from tests.mutation.mutants import full_name, mutants_called

TESTS = (
    "own: those of the same folder, the gradient checks of its level, and the refusals; near (default): also the other "
    "gradient checks and the tests with drawn examples; all: of all folders, which takes longest to measure"
)


def file_name(modules):
    """The name for the results of these modules; of many, the first and how many more."""
    shown = modules if len(modules) <= 4 else [*modules[:3], f"{len(modules) - 3} more"]
    return "+".join(shown).replace(" ", "-")


def parse(argv):
    """The arguments of the command line."""
    parser = argparse.ArgumentParser(
        "python -m tests.mutation", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "modules", nargs="+", metavar="NAME", help="such as functional, layers.linear, functional.gelu or Linear"
    )
    parser.add_argument("--sample", type=int, metavar="N", help="try only N mutants, drawn at random")
    parser.add_argument("--seed", type=int, default=0, help="of the sample (default 0)")
    parser.add_argument(
        "--again", action="store_true", help="try only what was not killed, or not tried, the last time"
    )
    parser.add_argument(
        "--equivalents", action="store_true", help="try only those of equivalent.json: none may be killed"
    )
    parser.add_argument("--tests", choices=("own", "near", "all"), default="near", help=TESTS)
    parser.add_argument("--workers", type=int, default=1, help="mutants that are tried at the same time (default 1)")
    parser.add_argument("--limit", type=float, default=20, help="seconds that one check may take (default 20)")
    parser.add_argument(
        "--effort",
        type=float,
        default=20,
        help="seconds of checks for each survivor, besides the module's own tests (default 20)",
    )
    arguments = parser.parse_args(argv)
    try:
        arguments.modules = list(map(full_name, arguments.modules))
    except LookupError as error:
        parser.exit(2, f"{parser.prog}: {error}\n")
    return arguments


def chosen(everything, equivalents, last, arguments):
    """The mutants to try."""
    if arguments.equivalents:
        return [mutant for mutant in everything if mutant.key in equivalents]
    mutants = [mutant for mutant in everything if mutant.key not in equivalents]
    if arguments.again:
        mutants = [mutant for mutant in mutants if last.get(mutant.key) != "killed"]
    if arguments.sample is not None and arguments.sample < len(mutants):
        numbers = np.random.default_rng(arguments.seed).choice(len(mutants), arguments.sample, replace=False)
        mutants = [mutants[number] for number in sorted(numbers)]
    return mutants


def main(argv=None):
    """Judge the mutants, print the table, list the survivors -> exit status."""
    arguments = parse(argv)
    tqdm.monitor_interval = 0  # no thread, as the processes are copies of this one
    everything = [mutant for name in arguments.modules for mutant in mutants_called(name)]
    equivalents, results = report.read_equivalents(), report.Results(file_name(arguments.modules))
    last = results.read()
    mutants = chosen(everything, equivalents, last, arguments)
    levels = {name.split(".")[0] for name in arguments.modules}
    groups = measuring.groups_of(levels, arguments.tests)
    measuring.import_tests(groups)
    judge = Judge(measuring.measure(groups), arguments.effort, arguments.limit, arguments.workers)
    judged, started = [], time.perf_counter()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        with tqdm(total=len(mutants), unit="mutant", disable=None) as bar:
            for mutant, verdict in judge.judge(mutants):
                judged.append((mutant, verdict))
                bar.set_postfix_str(f"{sum(not each.killed for _, each in judged)} not killed")
                bar.update()
    except KeyboardInterrupt:
        print("stopped; --again goes on with the rest")
    outcomes = {mutant.key: verdict.outcome for mutant, verdict in judged}
    if arguments.again:
        outcomes = {mutant.key: last[mutant.key] for mutant in everything if mutant.key in last} | outcomes
    if not arguments.equivalents and arguments.sample is None:
        results.write(outcomes)
    lines = [*report.table(everything, outcomes, {} if arguments.equivalents else equivalents)]
    lines.append(f"{len(judged):,} mutants tried in {(time.perf_counter() - started) / 60:.1f} minutes")
    print("\n".join(lines))
    listing = results.path.with_suffix(".txt")
    listing.write_text("\n".join([*lines, "", *report.survivors(judged)]), "utf-8")
    print(f"what was not killed is listed in {listing.relative_to(measuring.ROOT)}")
    return 1 if any(verdict.outcome == SURVIVED for _, verdict in judged) else 0


if __name__ == "__main__":
    sys.exit(main())

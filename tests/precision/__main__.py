"""`python -m tests.precision`: measure how exact the functions are, and write measured.json.

With names of functions, only their rows are measured and written; the others stay as they are.
"""

import argparse
import platform
import warnings

import numpy as np

from minitransformer.system.progress import tqdm
from tests.precision.cases import CASES
from tests.precision.measure import lines_of
from tests.precision.page import MEASURED, read_lines, row, write_lines


def main():
    """Measure all cases, or those of some functions, print them and record them."""
    parser = argparse.ArgumentParser(prog="python -m tests.precision", description=__doc__.partition(": ")[2])
    parser.add_argument("functions", nargs="*", metavar="FUNCTION", help="measure only these")
    names = parser.parse_args().functions
    unknown = set(names) - {case.function for case in CASES}
    if unknown:
        parser.error(f"there are no cases for {', '.join(sorted(unknown))}")
    cases = [case for case in CASES if not names or case.function in names]
    kept, lines = [line for line in read_lines() if names and line.function not in names], []
    with tqdm(cases, unit="case") as bar, warnings.catch_warnings():
        warnings.simplefilter("error")
        for case in bar:
            lines += lines_of(case)
    for line in lines:
        print(row(line))
    places = {(case.function, case.hard): place for place, case in enumerate(CASES)}
    in_order = sorted(kept + lines, key=lambda line: places.get((line.function, line.hard), len(places)))
    write_lines(in_order, np.__version__, platform.machine())
    print(f"wrote {MEASURED}")


if __name__ == "__main__":
    main()

"""`python -m tests.precision`: measure how exact the functions are, and write measured.json."""

import argparse
import platform
import warnings

import numpy as np

from minitransformer.system.progress import tqdm
from tests.precision.cases import CASES
from tests.precision.measure import lines_of
from tests.precision.page import MEASURED, row, write_lines


def main():
    """Measure all cases and record them, or print those of some functions."""
    parser = argparse.ArgumentParser(prog="python -m tests.precision", description=__doc__.partition(": ")[2])
    parser.add_argument("functions", nargs="*", metavar="FUNCTION", help="print only these and leave the file as it is")
    names = parser.parse_args().functions
    unknown = set(names) - {case.function for case in CASES}
    if unknown:
        parser.error(f"there are no cases for {', '.join(sorted(unknown))}")
    cases = [case for case in CASES if not names or case.function in names]
    lines = []
    with tqdm(cases, unit="case") as bar, warnings.catch_warnings():
        warnings.simplefilter("error")
        for case in bar:
            lines += lines_of(case)
    for line in lines:
        print(row(line))
    if not names:
        write_lines(lines, np.__version__, platform.machine())
        print(f"wrote {MEASURED}")


if __name__ == "__main__":
    main()

"""How well the numbers of the explorer agree with the library's, and how long the browser takes:

python -m tests.browser.numbers
"""

import contextlib
import statistics
import sys
from typing import NamedTuple

import numpy as np

from minitransformer.explorer import page_folder
from tests.browser import chromium
from tests.browser.cases import INPUTS, all_cases
from tests.browser.engine import BUILD, to_page
from tests.browser.explorer import open_explorer
from tests.browser.page import Page

ENGINE = ("language.js", "formulas.js", "engine.js")
ALL_NUMBERS = """
const [cases, names] = arguments;
return cases.map(build).map((machine, n) => names[n].map((name) => Array.from(machine.data(name))));
"""
TIME = """
const machine = build(arguments[0]);
const times = [];
for (let n = 0; n < 250; n++) { // a browser's clock is coarse: each time is that of 100 runs
  const start = performance.now();
  for (let run = 0; run < 100; run++) machine.run();
  times.push((performance.now() - start) / 100);
}
return times.slice(50);
"""


class Worst(NamedTuple):
    """Differences between the page and the library."""

    absolute: float = 0.0
    relative: float = 0.0  # to the largest entry of the array
    absolute_in: str = ""  # the name of an array and of a case
    relative_in: str = ""
    tensors: int = 0


def differences(page, cases):
    """{group: Worst} of all tensors that are computed in these cases."""
    expected = [case.numbers() for case in cases]
    names = [[name for name in arrays if name not in INPUTS] for arrays in expected]
    found = page.script(BUILD + ALL_NUMBERS, [to_page(case) for case in cases], names)
    groups = {}
    for case, ours, own, theirs in zip(cases, expected, names, found, strict=True):
        worst = groups.get(case.group, Worst())
        for name, values in zip(own, theirs, strict=True):
            scale = np.abs(ours[name.replace("db_k", "dW_k")]).max()  # db_k is 0, except for rounding
            worst = worse(worst, ours[name], values, scale, f"{name} ({case.name})")
        groups[case.group] = worst
    return groups


def worse(worst, right, found, scale, where):
    """`worst` with one more array, whose entries are as large as `scale`; NaN differs by infinity."""
    right, found = np.ravel(right), np.array(found, dtype=float)
    absolute = float(np.nan_to_num(np.abs(found - right), nan=np.inf).max())
    relative = absolute and float(absolute / scale if scale else np.inf)
    return Worst(
        max(worst.absolute, absolute),
        max(worst.relative, relative),
        where if absolute > worst.absolute else worst.absolute_in,
        where if relative > worst.relative else worst.relative_in,
        worst.tensors + 1,
    )


def milliseconds(page, case):
    """The time of one forward and backward pass in the browser: the median of 200, after a warm-up."""
    return statistics.median(page.script(BUILD + TIME, to_page(case)))


@contextlib.contextmanager
def engine():
    """A page with the engine, in a browser of its own."""
    driver = chromium.running(chromium.find_browser(), chromium.find_driver())
    with driver as started, contextlib.ExitStack() as servers:
        page = Page(started, servers)
        open_explorer(page)
        yield page


def main():
    if reason := chromium.missing():
        sys.exit(f"This {reason}")
    cases = all_cases()
    with engine() as page:
        groups, time = differences(page, cases), milliseconds(page, next(case for case in cases if case.name == "stop"))
    print(f"{'absolute':>9} {'relative':>9} {'tensors':>8}  largest differences from the library, in")
    for group, worst in groups.items():
        print(f"{row(worst)}  {group}: {worst.absolute_in}; {worst.relative_in}")
    absolute, relative, _, _, tensors = zip(*groups.values(), strict=True)
    print(f"{row(Worst(max(absolute), max(relative), tensors=sum(tensors)))}  all {len(cases)} examples")
    files = [(page_folder() / name).read_bytes() for name in ENGINE]
    lines, size = sum(len(file.splitlines()) for file in files), sum(len(file) for file in files)
    print(f"{', '.join(ENGINE)}: {lines} lines, {size} bytes")
    print(f"one forward and backward pass of stop: {time:.3f} ms (median of 200)")


def row(worst):
    return f"{worst.absolute:9.1e} {worst.relative:9.1e} {worst.tensors:8}"


if __name__ == "__main__":
    main()

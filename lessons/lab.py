"""What every lesson uses and none teaches: fast mode, checks, quoted numbers, the style of figures, a run's record.

    lesson = begin("05_scaled_dot_product")
    steps = lesson.pick(full=400, fast=40)
    lesson.check("rows of the softmax sum to 1", error(p.sum(-1), 1.0), 1e-15)
    lesson.quote("the loss begins at 2.77 nats", loss)
    lesson.save(figure)
    lesson.finish()

`python lessons/NN_name.py --fast`, or MINITRANSFORMER_FAST=1 in the environment, shortens training and measurements;
claims that are exact stay as they are. The figure and the record of a run go to runs/lessons/full/, in fast mode to
runs/lessons/fast/.
"""

import argparse
import json
import os
import platform
import re
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

HERE = Path(__file__).resolve().parent
SCRIPT = Path(sys.argv[0]).resolve()  # in a notebook, a file of Jupyter
FAST = os.environ.get("MINITRANSFORMER_FAST", "") not in ("", "0")

if SCRIPT.parent == HERE:
    from minitransformer.signals import end_script_in_one_line
    from minitransformer.terminal import print_in_any_encoding

    if not sys.flags.interactive and "IPython" not in sys.modules:  # there, Ctrl-C returns to the prompt
        end_script_in_one_line(SCRIPT.stem)  # before the slow imports below
    print_in_any_encoding()
    parser = argparse.ArgumentParser(description=f"Run lesson {SCRIPT.stem[:2]}.", allow_abbrev=False)
    parser.add_argument("--fast", action="store_true", help="shorten the training and the measurements")
    FAST = parser.parse_args().fast or FAST

import numpy as np

from minitransformer.course import workplace
from minitransformer.files import atomic_write
from minitransformer.gradcheck import relative_error
from minitransformer.plotting import BLUE, GREEN, GREY, ORANGE, PINK, SKY, YELLOW, pyplot, save_figure
from minitransformer.process import keep_freed_memory, limit_threads
from minitransformer.terminal import wrap

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = [
    "BLUE",
    "GREEN",
    "GREY",
    "ORANGE",
    "PINK",
    "ROOT",
    "SKY",
    "YELLOW",
    "Lesson",
    "begin",
    "error",
    "plt",
    "prose",
]

ROOT = workplace(HERE)
RECORDS = ROOT / "runs" / "lessons" / ("fast" if FAST else "full")
NUMBER = re.compile(r"[-−]?\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?")
plt = pyplot()


def error(got: Any, expected: Any) -> float:
    """`relative_error` of two arrays; `expected` may also be a number that all entries should equal."""
    expected = np.full(np.shape(got), expected) if np.ndim(expected) == 0 else expected
    return relative_error(got, expected)


def begin(name: str, threads: int | None = 1) -> "Lesson":
    """Begin the lesson `name` (its file's name without .py) with that many threads for each matrix product."""
    return Lesson(name, threads)


class Lesson:
    """One run of one lesson."""

    def __init__(self, name: str, threads: int | None) -> None:
        keep_freed_memory()
        self._threads = limit_threads(threads)
        self.name, self.fast = name, FAST
        self.started = time.perf_counter()
        self.checks: list[dict[str, Any]] = []
        self.claims: list[dict[str, str]] = []
        self.figure: str | None = None  # its path below ROOT
        self.prose = prose((HERE / f"{name}.py").read_text("utf-8"))

    def pick(self, full: Any, fast: Any) -> Any:
        """Return `full`, or `fast` in fast mode: for what takes long, never for what is exact."""
        return fast if self.fast else full

    def check(self, claim: str, measured: Any, at_most: float | None = None, *, at_least: float | None = None) -> None:
        """Print and record the measured value; AssertionError unless it is within the bound (NaN never is)."""
        measured = float(measured)
        if (at_most is None) == (at_least is None):
            raise ValueError("give either at_most or at_least")
        bound = f"at most {at_most:.3g}" if at_least is None else f"at least {at_least:.3g}"
        passed = measured <= at_most if at_least is None else measured >= at_least
        print(wrap(f"{claim}: {measured:.4g} ({bound})", f"  {'ok' if passed else 'NO'}  ", " " * 6))
        self.checks.append({"claim": claim, "measured": measured, "bound": bound})
        assert passed, f"{claim}: measured {measured:.6g}, must be {bound}"

    def quote(self, sentence: str, *measured: Any, within: float = 0.0, full_only: bool = False) -> None:
        """Compare the numbers in `sentence`, a literal piece of this lesson's prose, with the measured values.

        Each must be the measured value rounded to the digits that are written, with a relative tolerance of `within`
        for results that depend on the machine's rounding. `full_only`: numbers that fast mode does not reach.
        """
        if " ".join(sentence.split()) not in self.prose:
            raise AssertionError(f"the prose does not say: {sentence}")
        written = NUMBER.findall(sentence)
        if len(written) != len(measured):
            raise ValueError(f"{len(written)} numbers in {sentence!r}, {len(measured)} measured")
        if full_only and self.fast:
            return
        for text, value in zip(written, measured, strict=True):
            text = text.replace(",", "").replace("−", "-")
            digits, _, power = text.partition("e")
            last = 10.0 ** (int(power or 0) - len(digits.partition(".")[2]))
            slack = 0.5001 * last + within * abs(float(text))
            assert abs(float(value) - float(text)) <= slack, f"{sentence!r} says {text}, measured {float(value):.6g}"

    def claim(self, popular: str, verdict: str, found: str) -> None:
        """Record the verdict on something that popular texts say, for CLAIMS.md. `found`: what was measured."""
        self.claims.append({"claim": popular, "verdict": verdict, "found": found})
        print(wrap(popular, "  claim: ", " " * 9))
        print(wrap(f"{verdict}: {found}", "  -> ", " " * 5))

    def save(self, figure: "Figure") -> None:
        """Write the lesson's figure beside its record, as NAME.png."""
        path = RECORDS / f"{self.name}.png"
        save_figure(figure, path)
        self.figure = path.relative_to(ROOT).as_posix()

    def finish(self) -> None:
        """Print how many checks passed, and write the record of this run."""
        seconds = time.perf_counter() - self.started
        record = {
            "seconds": round(seconds, 2),
            "machine": f"{platform.machine()}, {os.cpu_count()} cores, NumPy {np.__version__}",
            "checks": self.checks,
            "claims": self.claims,
            "figure": self.figure,
        }
        with atomic_write(RECORDS / f"{self.name}.json") as partial:
            partial.write_text(json.dumps(record, indent=1, ensure_ascii=False), "utf-8")
        mode = " in fast mode" if self.fast else ""
        print(f"\n{self.name}: {len(self.checks)} checks passed{mode}, {seconds:.1f} s")
        print(f"figure: {self.figure}")


def prose(text: str) -> str:
    """The prose of a lesson's source `text`: its Markdown cells without the comment signs, on one line."""
    cells = re.split(r"^# %%", text, flags=re.MULTILINE)
    lines = [line for cell in cells if cell.startswith(" [markdown]") for line in cell.splitlines()[1:]]
    return " ".join(" ".join(line.removeprefix("#") for line in lines).split())

"""What every lesson uses and none teaches: fast mode, checks, printed matrices, figures, a run's record.

    lesson = begin("05_scaled_dot_product")
    steps = lesson.pick(full=400, fast=40)
    show("p (T, S)", p, rows=target, columns=source)
    lesson.check("rows of the softmax sum to 1", error(p.sum(-1), 1.0), 1e-15)
    lesson.judge("ds_row", ds_row)           what the reader writes before seeing ours; `...` until then
    lesson.compare("steps", guess, steps)    a number that the reader has guessed, or `...`
    lesson.save(figure)
    lesson.finish(globals())

`python lessons/NN_name.py --fast`, or MINITRANSFORMER_FAST=1 in the environment, shortens training and measurements;
exact claims stay as they are. Figures and the record of a run go to runs/lessons/full/, in fast mode to
runs/lessons/fast/.

At its end a lesson is held to what it says: `finish` runs checks/NN_name.py, whose `verify(lesson, run)` compares the
numbers in the prose with those that the lesson computed (`run.loss` is the lesson's variable `loss`):

    lesson.quote("the loss begins at 2.77 nats", run.loss)
    lesson.example("cross.p", run.p)
    lesson.claim("attention is permutation-invariant", "half right", "equivariant: ...", said="blog posts")

Its HANDS say what `judge` expects, and which mistakes it knows, as functions of the lesson's variables so far:

    HANDS = {"ds_row": (lambda run: run.ds[1], {"the average is forgotten": lambda run: run.p[1] * run.dp[1]})}
"""

import argparse
import functools
import json
import os
import platform
import re
import runpy
import sys
import time
from collections.abc import Mapping
from itertools import combinations
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

LESSONS = Path(__file__).resolve().parents[1]
SCRIPT = Path(sys.argv[0]).resolve()  # in a notebook, a file of Jupyter
FAST = os.environ.get("MINITRANSFORMER_FAST", "") not in ("", "0")

if SCRIPT.parent == LESSONS:
    from support.ending import end_script_in_one_line

    from minitransformer.system.terminal import print_in_any_encoding

    if not sys.flags.interactive and "IPython" not in sys.modules:  # there, Ctrl-C returns to the prompt
        end_script_in_one_line(SCRIPT.stem)  # before the slow imports below
    print_in_any_encoding()
    parser = argparse.ArgumentParser(description=f"Run lesson {SCRIPT.stem[:2]}.", allow_abbrev=False)
    parser.add_argument("--fast", action="store_true", help="shorten the training and the measurements")
    FAST = parser.parse_args().fast or FAST

from support.architecture import MAPS, strip
from support.example_numbers import numbers
from support.tables import ROWS, SOURCE, TARGET_IN, TARGET_OUT, VOCABULARY, show

import numpy as np

from minitransformer.course import workplace
from minitransformer.example import load_example
from minitransformer.gradcheck import relative_error
from minitransformer.gradcheck.judge.clues import Output, ratio_clue, shape_clue, worst_clue, wrong_entries
from minitransformer.plotting import BLUE, GREEN, GREY, ORANGE, PINK, SKY, YELLOW, pyplot, save_figure
from minitransformer.system.files import atomic_write
from minitransformer.system.process import keep_freed_memory, limit_threads
from minitransformer.system.terminal import wrap

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = [
    "BLUE",
    "GREEN",
    "GREY",
    "ORANGE",
    "PINK",
    "ROOT",
    "ROWS",
    "SKY",
    "SOURCE",
    "TARGET_IN",
    "TARGET_OUT",
    "VOCABULARY",
    "YELLOW",
    "Lesson",
    "begin",
    "error",
    "plt",
    "prose",
    "running_example",
    "show",
]

ROOT = workplace(LESSONS)
RECORDS = ROOT / "runs" / "lessons" / ("fast" if FAST else "full")
NUMBER = re.compile(r"[-−]?\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?")
plt = pyplot()


def error(got: Any, expected: Any) -> float:
    """The largest difference of two arrays, relative to the largest entry of `expected`, which may be one number."""
    expected = np.full(np.shape(got), expected) if np.ndim(expected) == 0 else expected
    return relative_error(got, expected)


@functools.cache
def running_example() -> dict[str, Any]:
    """All numbers of the running example, "cross.p" and the like; `support.example_numbers` has the list."""
    return numbers(load_example())


def begin(name: str, threads: int | None = 1) -> "Lesson":
    """Begin the lesson `name` (its file's name without .py) with that many threads for each matrix product."""
    return Lesson(name, threads)


class Lesson:
    """One run of one lesson."""

    def __init__(self, name: str, threads: int | None) -> None:
        keep_freed_memory()
        self._threads = limit_threads(threads)
        self.name, self.fast = name, FAST
        self.quiet = False  # whether checks that pass are not printed
        self.started = time.perf_counter()
        self.checks: list[dict[str, Any]] = []
        self.claims: list[dict[str, str]] = []
        self.hands: list[str] = []  # what the reader was asked to write or to guess
        self.examples: list[str] = []  # names of the running example's numbers that this lesson has computed
        self.figures: list[str] = []  # their paths below ROOT
        self.prose = prose((LESSONS / f"{name}.py").read_text("utf-8"))

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
        if not self.quiet:
            print(wrap(f"{claim}: {measured:.4g} ({bound})", f"  {'ok' if passed else 'NO'}  ", " " * 6))
        self.checks.append({"claim": claim, "measured": measured, "bound": bound})
        assert passed, f"{claim}: measured {measured:.6g}, must be {bound}"

    def judge(self, name: str, yours: Any) -> bool:
        """Say whether what the reader has written for `name` is right, or which mistake it is -> whether it is.

        `...` is not written yet, and lets the lesson go on. What is right, and the known mistakes, are in the HANDS of
        checks/NN_name.py.
        """
        run = SimpleNamespace(**sys._getframe(1).f_globals)
        expected, mistakes = self._sidecar("HANDS")[name]
        right = np.asarray(expected(run))
        wrong = {mistake: np.asarray(formula(run)) for mistake, formula in mistakes.items()}
        for (one, array), (other, same_array) in combinations([("what is right", right), *wrong.items()], 2):
            assert not same(array, same_array), f"{one} and {other} of {name} are the same"
        self.hands.append(name)
        said = "not written yet" if yours is ... else verdict(name, yours, right, wrong)
        print(wrap(said, f"  your {name}: ", " " * 6))
        return said == "right"

    def compare(self, what: str, guess: Any, measured: Any) -> None:
        """Print a measured number, and what the reader has guessed, unless that is still `...`.

        A guess that is no number is asked again, before the measured one is told.
        """
        self.hands.append(what)
        try:
            yours = "you have not guessed" if guess is ... else f"your guess: {float(guess):,.4g}"
            said = f"{measured:,.4g} ({yours})"
        except (TypeError, ValueError):
            said = f"your guess {guess!r} is not a number: write one, such as 0.5, and run this again"
        print(wrap(f"{what}: {said}", "  ", " " * 6))

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

    def example(self, name: str, computed: Any) -> None:
        """Check that the lesson has computed the running example's number `name`; see `minitransformer.example`.

        For one head alone, `name` ends in its number: "cross.p[0]".
        """
        place, _, head = name.partition("[")
        expected = running_example()[place]
        expected = np.asarray(expected[int(head.removesuffix("]"))] if head else expected)
        assert np.shape(computed) == expected.shape, f"{name} has the shape {expected.shape}, not {np.shape(computed)}"
        difference = np.abs(computed - expected).max()
        assert difference <= 1e-12, f"{name} differs from the running example by {difference:.2g}"
        self.examples.append(name)

    def claim(self, popular: str, verdict: str, found: str, said: str) -> None:
        """Record the verdict on something that popular texts say, for CLAIMS.md.

        `found` is what was measured, `said` the kind of text that says it, such as "blog posts and lecture notes".
        """
        self.claims.append({"claim": popular, "verdict": verdict, "found": found, "said": said})

    def _sidecar(self, name: str) -> Any:
        """What the lesson's file in checks/ calls `name`."""
        return runpy.run_path(str(LESSONS / "checks" / f"{self.name}.py"))[name]

    def save(self, figure: "Figure", part: str = "") -> None:
        """Write a figure of the lesson beside its record, as NAME.png, or as NAME_part.png."""
        path = RECORDS / f"{self.name}{'_' * bool(part)}{part}.png"
        save_figure(figure, path)
        self.figures.append(path.relative_to(ROOT).as_posix())

    def finish(self, variables: Mapping[str, Any]) -> None:
        """Hold the lesson to what its prose says, say how many checks passed, and write the record of this run.

        `variables` are the lesson's own, `globals()`.
        """
        check_notation(variables)
        printed, self.quiet = len(self.checks), True
        try:
            self._sidecar("verify")(self, SimpleNamespace(**variables))
        except AssertionError as problem:
            raise AssertionError(
                f"{problem}\nIf you changed the lesson, its text no longer fits, which is fine."
            ) from None
        self.save(strip(MAPS[self.name[:2]]), "map")
        seconds = time.perf_counter() - self.started
        record = {
            "seconds": round(seconds, 2),
            "machine": f"{platform.machine()}, {os.cpu_count()} cores, NumPy {np.__version__}",
            "checks": self.checks,
            "printed": printed,
            "claims": self.claims,
            "hands": self.hands,
            "examples": self.examples,
            "figures": self.figures,
        }
        with atomic_write(RECORDS / f"{self.name}.json") as partial:
            partial.write_text(json.dumps(record, indent=1, ensure_ascii=False), "utf-8")
        mode = " in fast mode" if self.fast else ""
        print(f"\n{self.name}: {len(self.checks)} checks passed{mode}, {seconds:.1f} s")
        print("figures:", *self.figures)


NOTATION = {  # what a letter is in every lesson's code; NOTATION.md says what it means
    **dict.fromkeys("BCDFHNSTV", int),
    **dict.fromkeys(("E", "M", "PE", "W", "q", "k", "v", "s", "p", "o", "z"), np.ndarray),
}


def check_notation(variables: Mapping[str, Any]) -> None:
    """AssertionError if a letter of a lesson is something else than NOTATION.md says."""
    for name, kind in NOTATION.items():
        if name in variables:
            found = type(variables[name]).__name__
            assert isinstance(variables[name], kind), f"{name} is a {found}, but NOTATION.md says {kind.__name__}"


def same(got: np.ndarray, right: np.ndarray) -> bool:
    """Whether an array is `right` up to rounding."""
    return got.shape == right.shape and not wrong_entries(got, right, 1e-9).any()


def verdict(name: str, yours: Any, right: np.ndarray, wrong: Mapping[str, np.ndarray]) -> str:
    """ "right", or which of the known mistakes in `wrong` it is, or what can be said of another."""
    try:
        got = np.asarray(yours, np.float64)
    except (TypeError, ValueError):
        return f"wrong: it must be an array of numbers, not {type(yours).__name__}"
    if same(got, right):
        return "right"
    for mistake, array in wrong.items():
        if same(got, array):
            return f"wrong: {mistake}"
    if not np.isfinite(got).all():
        return "wrong: there is NaN or infinity in it"
    output = Output(name, "")
    if got.shape != right.shape:
        return f"wrong: {shape_clue(got, right, output)}"
    return f"wrong: {ratio_clue(got, right, {}, {}) or worst_clue(got, right, output)}"


def prose(text: str) -> str:
    """The prose of a lesson's source `text`: its Markdown cells without the comment signs, on one line."""
    cells = re.split(r"^# %%", text, flags=re.MULTILINE)
    lines = [line for cell in cells if cell.startswith(" [markdown]") for line in cell.splitlines()[1:]]
    return " ".join(" ".join(line.removeprefix("#") for line in lines).split())

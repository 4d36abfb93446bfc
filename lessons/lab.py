"""What every lesson uses and none teaches: fast mode, checks, quoted numbers, the look of figures, the record of a run.

    lesson = begin("05_scaled_dot_product")
    steps = lesson.pick(full=400, fast=40)
    lesson.check("rows of the softmax sum to 1", error(p.sum(-1), 1.0), 1e-15)
    lesson.quote("the loss begins at 2.77 nats", loss)
    lesson.save(figure)
    lesson.finish()

MINITRANSFORMER_FAST=1 in the environment shortens training and measurements; claims that are exact stay as they are.
"""

import json
import os
import platform
import re
import sys
import time
from pathlib import Path

import matplotlib
import matplotlib.pyplot as plt
import numpy as np

from minitransformer.files import written_whole
from minitransformer.process import keep_freed_memory, limit_threads

ROOT = Path(__file__).resolve().parent.parent
FAST = os.environ.get("MINITRANSFORMER_FAST", "") not in ("", "0")
RECORDS = ROOT / "runs" / "lessons" / ("fast" if FAST else "full")
NUMBER = re.compile(r"[-−]?\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?")
IN_NOTEBOOK = "ipykernel" in sys.modules

# Okabe and Ito's palette, which colour-blind readers can tell apart
BLUE, ORANGE, GREEN, PINK, YELLOW, SKY = "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9"
GREY = "#777777"
STYLE = {
    "font.size": 9,
    "axes.titlesize": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.prop_cycle": matplotlib.cycler(color=(BLUE, ORANGE, GREEN, PINK, YELLOW, SKY, GREY)),
    "figure.constrained_layout.use": True,
    "figure.figsize": (6.4, 3.6),
    "legend.frameon": False,
    "image.cmap": "viridis",
    "savefig.dpi": 110,
}


def error(got, expected):
    """The largest difference of two arrays, relative to the largest entry expected (or to 1, if all are 0)."""
    got, expected = np.asarray(got), np.asarray(expected)
    if got.shape != expected.shape and expected.ndim:
        raise ValueError(f"shapes differ: {got.shape} and {expected.shape}")
    return float(np.abs(got - expected).max() / (np.abs(expected).max() or 1.0))


def begin(name, threads=1):
    """Begin the lesson `name`, its file's name without .py -> a Lesson. `threads`: of a matrix product."""
    return Lesson(name, threads)


class Lesson:
    """One run of one lesson."""

    def __init__(self, name, threads):
        if hasattr(sys.stdout, "reconfigure"):
            sys.stdout.reconfigure(encoding="utf-8")
        if not IN_NOTEBOOK:
            matplotlib.use("Agg")
        plt.rcParams.update(STYLE)
        keep_freed_memory()
        self._threads = limit_threads(threads)
        self.name, self.fast = name, FAST
        self.started = time.perf_counter()
        self.checks, self.claims, self.figure = [], [], None
        self.prose = prose((Path(__file__).parent / f"{name}.py").read_text("utf-8"))

    def pick(self, full, fast):
        """`full`, or in fast mode `fast`: for what takes long, never for what is exact."""
        return fast if self.fast else full

    def check(self, claim, measured, at_most=None, *, at_least=None):
        """Print and keep the measured value; AssertionError unless it is within the bound (NaN never is)."""
        measured = float(measured)
        if (at_most is None) == (at_least is None):
            raise ValueError("give either at_most or at_least")
        bound = f"at most {at_most:.3g}" if at_least is None else f"at least {at_least:.3g}"
        passed = measured <= at_most if at_least is None else measured >= at_least
        print(f"  {'ok' if passed else 'NO'}  {claim}: {measured:.4g} ({bound})", flush=True)
        self.checks.append({"claim": claim, "measured": measured, "bound": bound})
        assert passed, f"{claim}: measured {measured:.6g}, must be {bound}"

    def quote(self, sentence, *measured, within=0.0, full_only=False):
        """Hold the numbers in `sentence`, a literal piece of this lesson's prose, to what was measured.

        Each must be the measured value rounded to the digits that are written, give or take `within` of it (for what
        depends on the machine's rounding). `full_only`: numbers that fast mode does not reach.
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

    def claim(self, popular, verdict, found):
        """Keep the verdict on something that popular texts say, for the page of claims. `found`: what was measured."""
        self.claims.append({"claim": popular, "verdict": verdict, "found": found})
        print(f"  claim: {popular}\n  -> {verdict}: {found}", flush=True)

    def save(self, figure):
        """Write the lesson's figure: plots/NAME.png, or in fast mode beside the records, where nobody reads it."""
        path = RECORDS / f"{self.name}.png" if self.fast else ROOT / "plots" / f"{self.name}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        with written_whole(path) as partial:
            figure.savefig(partial, format="png", metadata={"Software": None}, bbox_inches="tight")
        if not IN_NOTEBOOK:
            plt.close(figure)
        self.figure = path.relative_to(ROOT).as_posix()

    def finish(self):
        """Say how many checks passed, and keep the record of this run."""
        seconds = time.perf_counter() - self.started
        record = {
            "seconds": round(seconds, 2),
            "machine": f"{platform.machine()}, {os.cpu_count()} cores, NumPy {np.__version__}",
            "checks": self.checks,
            "claims": self.claims,
            "figure": self.figure,
        }
        RECORDS.mkdir(parents=True, exist_ok=True)
        with written_whole(RECORDS / f"{self.name}.json") as partial:
            partial.write_text(json.dumps(record, indent=1, ensure_ascii=False), "utf-8")
        mode = " in fast mode" if self.fast else ""
        print(f"\n{self.name}: {len(self.checks)} checks passed{mode}, {seconds:.1f} s; figure {self.figure}")


def prose(text):
    """The prose of a lesson's source `text`: its markdown cells, without the comment signs, on one line."""
    cells = re.split(r"^# %%", text, flags=re.MULTILINE)
    lines = [line for cell in cells if cell.startswith(" [markdown]") for line in cell.splitlines()[1:]]
    return " ".join(" ".join(line.removeprefix("#") for line in lines).split())

"""What docs/floating-point.md shows of the measurements: their sum, the reasons for what stands out, and the table.

The measurements are in measured.json, which `python -m tests.precision` writes. The site writes these parts into the
page when it is built.
"""

import json
import textwrap
from pathlib import Path
from typing import NamedTuple

MEASURED = Path(__file__).with_name("measured.json")
MANY = 10.0  # times the error of a stable formula: a row with more stands out, and needs a reason
COLUMNS = ("function", "input", "result", "unit", "float32", "stable", "float64", "stable", "")
REASONS = {
    ("tanh", "additive_attention", "lstm", "gru"): """
        The slope of tanh is computed from the remembered output as 1 - y^2, and that of the sigmoid as s (1 - s). Where
        a unit is saturated, y has been rounded to a number near 1, and the subtraction leaves little but the rounding
        error: about an ulp of 1, whatever the slope. A stable formula would remember the argument and compute an
        exponential of it for each entry in backward. The LSTM and the GRU also compute the sigmoid of a gate as
        (1 + tanh(a / 2)) / 2, one call for all gates. So a gate that is nearly closed has an error of up to half an ulp
        of 1, and so has what it lets through.""",
    ("gelu", "geglu", "normal_cdf"): """
        Phi(x) is computed as (1 + erf(x / sqrt(2))) / 2, which in the left tail is a difference of nearly equal
        numbers. The error of Phi is at most half an ulp of 1, and that of GELU |x| times as large. A stable formula
        needs a second fit, of the complement of erf. PyTorch computes GELU in the same way.""",
    ("gelu_tanh", "geglu_tanh"): """
        The share (1 + tanh(s)) / 2 is a difference of nearly equal numbers in the left tail, as in the exact form. Its
        error is at most half an ulp of 1. With 1 / (1 + exp(-2 s)) the tail would be right, but the division takes
        time, and in the tail the tanh form is itself a poor approximation of GELU. In the right tail the slope is about
        1 + 2 x (1 - G) s'. There 1 - G has lost its digits, and 2 x s' makes the error larger: up to about 30 ulps of a
        slope near 1.""",
    ("softmax",): """
        The gradient is p (dp - sum p dp). If one weight is nearly 1, the sum is nearly its dp, and the difference keeps
        the rounding error of dp. Compared with its terms it is as exact as can be expected. A stable formula first
        subtracts the dp of the largest weight from every dp: one more pass over all weights.""",
    ("cross_entropy",): """
        If the right word is nearly sure, the gradient of its logit is p - 1, where p has been rounded to a number near
        1. The error is at most an ulp of 1, divided by the number of tokens. A stable formula remembers the sum of the
        other probabilities for each token, as one more array.""",
    ("linear_attention",): """
        If all features of a query and of its keys are below 1e-19, their products are too small for float32, and so is
        the sum that the output is divided by. The output is then 0, as for a query that may attend to nothing.""",
}


class Line(NamedTuple):
    """One row of the table."""

    function: str
    hard: str
    result: str
    unit: str
    single: float  # errors in float32 and float64, each with that of a stable formula
    single_stable: float
    double: float
    double_stable: float

    @property
    def times(self) -> float:
        """How many times the error of a stable formula the error is."""
        return max(self.single / self.single_stable, self.double / self.double_stable)

    @property
    def stands_out(self) -> bool:
        return self.times > MANY


def reason_of(function):
    """The functions that share the reason of `function`, or None."""
    return next((functions for functions in REASONS if function in functions), None)


def read_lines():
    """The recorded measurements, as rows."""
    return [Line(*line) for line in json.loads(MEASURED.read_text("utf-8"))["lines"]]


def write_lines(lines, numpy, machine):
    """Record measurements, one to a line of the file, with two digits of each error."""
    rows = ",\n".join(f"  {json.dumps([*line[:4], *map(rounded, line[4:])])}" for line in lines)
    head = f'{{\n "numpy": {json.dumps(numpy)},\n "machine": {json.dumps(machine)},\n "lines": [\n'
    MEASURED.write_text(f"{head}{rows}\n ]\n}}\n", "utf-8")


def rounded(error):
    """Two digits of an error; what cannot be seen beside one unit is 0."""
    return float(f"{error:.2g}") if error >= 1e-3 else 0.0


def summary():
    """How many results were measured, and how many stand out."""
    lines, recorded = read_lines(), json.loads(MEASURED.read_text("utf-8"))
    out = [line for line in lines if line.stands_out]
    functions = {line.function for line in lines}
    fine = sorted(functions - {line.function for line in out})
    worst = max(line.times for line in lines if not line.stands_out)
    return (
        f"{len(lines)} results of {len(functions)} functions were measured, with NumPy {recorded['numpy']} on "
        f"{recorded['machine']}. {len(lines) - len(out)} of them have at most {MANY:.0f} times the error of a stable "
        f"formula, at worst {worst:.1f} times. The other {len(out)} have an asterisk. These functions have none: "
        f"{', '.join(fine)}."
    )


def reasons():
    """Why results stand out, as a list."""
    used = dict.fromkeys(reason_of(line.function) for line in read_lines() if line.stands_out)
    return "\n".join(bullet(names) for names in used)


def bullet(names):
    """The reason that these functions share, as an item of a list."""
    text = f"**{', '.join(names)}.** {' '.join(REASONS[names].split())}"
    return textwrap.fill(text, 120, initial_indent="* ", subsequent_indent="  ")


def table():
    """All measurements, as a table."""
    return "\n".join([f"| {' | '.join(COLUMNS)} |", "| --- " * len(COLUMNS) + "|", *map(row, read_lines())])


def row(line):
    """A line of the table in Markdown."""
    cells = (*line[:4], *(f"{rounded(error):g}" for error in line[4:]), "*" if line.stands_out else "")
    return f"| {' | '.join(cells)} |"

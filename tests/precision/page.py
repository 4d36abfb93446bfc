"""The page docs/floating-point.md: its text, its table, and the reasons for the rows that stand out."""

import platform
import re
import textwrap
from pathlib import Path
from typing import NamedTuple

import numpy as np

from tests.precision.measure import DOUBLE, SINGLE, measure, units_of

PAGE = Path(__file__).parents[2] / "docs" / "floating-point.md"
MANY = 10.0  # times the error of a stable formula: a row with more stands out, and needs a reason
HEAD = """\
# Floating-point errors

How exact are the functions of `minitransformer.functional`, forward and backward? The gradient checks show that the
formulas are right. This page shows how much of them survives rounding, on inputs that were chosen to be hard. Every
result is compared with the definition of the function, computed by plain loops in 100 digits. The gradients of the
definition come from the chain rule, one operation at a time, so they share nothing with the derivations in the package.

`python -m tests.precision` writes this page. The tests compare the functions with it.

## How to read the table

**Inputs.** They are drawn, rounded to float32 or float64, and then given to the function and to the definition. So the
rounding of the inputs is no error here.

**Unit.** An error is given in units in the last place (ulp) of float32 or float64. An ulp is the distance between two
neighbouring numbers, and the rounding of one result costs at most half of it. The column says the ulp of what:

* *entry*: of the right result itself. This is the strictest measure, for functions of one number, weights and losses.
* *terms*: of the sum of the absolute values of the terms, |a| . |b| for a product of matrices. In a sum with different
  signs the digits cancel, and what is left has the rounding errors of the terms. For a gradient the terms are all paths
  from the loss to the input.
* *array*: of the largest entry of the result.
* *one*: of the number 1, so these are absolute errors.

The largest error of all entries is given.

**Stable.** What a stable formula would give: the right result of inputs that are off by half an ulp each, rounded once.
It is half a unit, plus the change of the right result when every input is moved by half an ulp, up or down by chance.
Where the problem itself is sensitive, this number is large: inputs that have been rounded before have already lost as
much. A result whose error is more than {many:.0f} times this number, in float32 or float64, has an asterisk. Its reason
is given below.

**Small weights.** On the CPU the softmax makes weights below 1e-19 in float32 (1e-154 in float64) exactly 0, because
processors are slow with numbers that are smaller still. Compared with the largest weight this error cannot be seen; the
rows that contain such weights say so.

## Result

{summary}

Measured with NumPy {numpy} on {machine}. Other processors and libraries round differently, so the tests allow twice
these errors, and one unit more. Where there is an asterisk, they hold the rows of absolute errors instead.

## Reasons for the asterisks

{reasons}

## Table

| function | input | result | unit | float32 | stable | float64 | stable | |
| --- | --- | --- | --- | --- | --- | --- | --- | --- |
{table}
"""
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
        the rounding error of dp. Compared with its terms it is as exact as can be expected: see the row above. A
        stable formula first subtracts the dp of the largest weight from every dp: one more pass over all weights.""",
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


def lines_of(case):
    """The rows of a case."""
    single, double = measure(case, SINGLE), measure(case, DOUBLE)
    return [
        Line(case.function, case.hard, result, unit, *single[result], *double[result])
        for result, unit in zip(single, units_of(case, single), strict=True)
    ]


def reason_of(function):
    """The functions that share the reason of `function`, or None."""
    return next((functions for functions in REASONS if function in functions), None)


def make_page(lines):
    """The text of the page."""
    out = [line for line in lines if line.stands_out]
    functions = {line.function for line in lines}
    fine = sorted(functions - {line.function for line in out})
    others = [line for line in lines if not line.stands_out]
    table = "\n".join(map(row, lines))
    summary = textwrap.fill(
        f"{len(lines)} results of {len(functions)} functions were measured. {len(others)} of them have at most "
        f"{MANY:.0f} times the error of a stable formula, at worst {max(line.times for line in others):.1f} times. The "
        f"other {len(out)} have an asterisk. These functions have none: {', '.join(fine)}.",
        120,
    )
    used = dict.fromkeys(reason_of(line.function) for line in out)
    reasons = "\n".join(bullet(names) for names in used)
    return HEAD.format(
        many=MANY, numpy=np.__version__, machine=platform.machine(), summary=summary, reasons=reasons, table=table
    )


def bullet(names):
    """The reason that these functions share, as an item of a list."""
    text = f"**{', '.join(names)}.** {' '.join(REASONS[names].split())}"
    return textwrap.fill(text, 120, initial_indent="* ", subsequent_indent="  ")


def row(line):
    """A line of the table in Markdown."""
    numbers = (line.single, line.single_stable, line.double, line.double_stable)
    cells = (line.function, line.hard, line.result, line.unit, *(f"{x:.2g}" if x >= 1e-3 else "0" for x in numbers))
    return f"| {' | '.join(cells)} | {'*' if line.stands_out else ''} |"


def read_page():
    """The rows of the page as it is."""
    table = re.findall(r"^\| (.*) \|$", PAGE.read_text("utf-8").rpartition("| --- |")[2], re.MULTILINE)
    cells = [row.split(" | ") for row in table]
    return [Line(*words[:4], *map(float, words[4:8])) for words in cells]

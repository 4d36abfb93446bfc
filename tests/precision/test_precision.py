"""How exact the functions are: no worse than measured.json says, and what is inexact there has a reason."""

import functools

import numpy as np
import pytest
from mpmath import mp

from minitransformer import functional as F
from tests.precision import page
from tests.precision.cases import CASES
from tests.precision.exact import DIGITS, Exact, differentiate, dot
from tests.precision.measure import DOUBLE, SINGLE, lines_of, measure
from tests.precision.page import REASONS, read_lines, reason_of

BY_NAME = {case.name: case for case in CASES}
SHORT = [case.name for case in CASES if not case.long and case.units != ("one", "one")]
WITHOUT_BACKWARD = {"alibi_bias", "erf", "normal_cdf", "normal_pdf", "rotary_tables", "sinusoidal_positions"}


recorded = functools.cache(read_lines)


def lines_on_record(case):
    """The recorded rows of a case, by result."""
    return {line.result: line for line in recorded() if (line.function, line.hard) == (case.function, case.hard)}


def assert_at_most(error, line, form):
    """Other processors and libraries round differently. What stands out is nothing but such rounding errors."""
    assert line.stands_out or error <= 2 * (line.single if form is SINGLE else line.double) + 1, line


def test_every_function_with_a_backward_is_measured():
    names = {name.removesuffix("_backward") for name in F.__all__ if name.endswith("_backward")}
    assert {case.function for case in CASES} == names | WITHOUT_BACKWARD


def test_functions_that_stand_out_have_rows_of_absolute_errors():
    absolute = {line.function for line in recorded() if line.unit == "one"}
    assert all(absolute & set(functions) for functions in set(REASONS) - {("linear_attention",)})


def test_the_record_has_a_row_for_each_case_and_no_other():
    assert len(BY_NAME) == len(CASES)
    assert {(line.function, line.hard) for line in recorded()} == {(case.function, case.hard) for case in CASES}


def test_errors_are_recorded_with_two_digits_and_read_again(tmp_path, monkeypatch):
    monkeypatch.setattr(page, "MEASURED", tmp_path / "measured.json")
    page.write_lines([page.Line("relu", "near 0", "dx", "entry", 1.26, 0.5, 0.00099, 123.4)], "2.0", "x86")
    assert read_lines() == [("relu", "near 0", "dx", "entry", 1.3, 0.5, 0.0, 120.0)]


def test_what_stands_out_has_a_reason_and_every_reason_is_needed():
    out = {line.function for line in recorded() if line.stands_out}
    assert {function for function in out if not reason_of(function)} == set(), "a stable formula, or a row in REASONS"
    assert {reason_of(function) for function in out} == set(REASONS)


@pytest.mark.parametrize("name", SHORT)
def test_errors_in_float32_are_those_on_record(name):
    case = BY_NAME[name]
    got, lines = measure(case, SINGLE, draws=0), lines_on_record(case)
    assert got.keys() == lines.keys()
    for result, measured in got.items():
        assert_at_most(measured.error, lines[result], SINGLE)


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.weekly if case.long else pytest.mark.exhaustive)
        for name, case in BY_NAME.items()
    ],
)
def test_all_errors_are_those_on_record(name):
    case = BY_NAME[name]
    lines = lines_on_record(case)
    for line in lines_of(case):
        assert_at_most(line.single, lines[line.result], SINGLE)
        assert_at_most(line.double, lines[line.result], DOUBLE)
        assert not line.stands_out or reason_of(line.function), line


def test_size_of_a_sum_is_that_of_its_terms():
    with mp.workdps(DIGITS):
        x, y = Exact(3), Exact(-2)
        assert dot([x, y], [Exact(5), Exact(7)]).size == 29
        difference = x - 3 * x
        differentiate(np.array([difference]), [mp.one])
        assert (x.gradient, x.gradient_size) == (-2, 4)


@pytest.mark.parametrize("form", [SINGLE, DOUBLE], ids=["float32", "float64"])
def test_ulps_are_the_distances_between_neighbours(form):
    for x in (1.0, 0.75, 1e-30, 1.5e4, float(np.finfo(form.dtype).tiny) / 3, float(np.finfo(form.dtype).tiny)):
        number = form.dtype(x)
        assert float(form.ulp(mp.mpf(float(number)))) == float(np.nextafter(number, form.dtype(np.inf)) - number)

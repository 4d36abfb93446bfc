"""What a report says: right verdicts, the worst entry with its numbers, and a form for programs."""

import json
import math

import numpy as np
import pytest

from minitransformer.gradcheck import Report, TensorCheck, check_layer
from minitransformer.gradcheck.judge.report import CANNOT_TELL, COMPLEX_STEP, OK, RICHARDSON, WRONG
from tests.gradcheck.small_layers import Affine, Function, X

GOOD = TensorCheck("W", (2, 3), COMPLEX_STEP, 0, 3e-16, 1e-12, (1, 2), 0.25, 0.25)
BAD = TensorCheck("inner.b", (4,), COMPLEX_STEP, 0, 0.5, 1e-12, (3,), 1.5, -0.75)
NAN = TensorCheck("g", (5,), RICHARDSON, 0, math.nan, 1e-8, (0,), math.nan, 2.0)
UNCLEAR = TensorCheck("x", (7,), RICHARDSON, 0, 1e-9, 1e-8, (1,), 0.5, 0.5, bound=2e-8, unclear=2)
UNKNOWN = TensorCheck("u", (3,), RICHARDSON, 0, math.nan, math.inf, (0,), math.nan, math.nan, unclear=3)
ALONG = TensorCheck("E", (900, 30), COMPLEX_STEP, 3, 0.125, 1e-12, (2,), 7.5, 6.25)


def report(*checks):
    return Report("mine", checks, "the forward is analytic")


@pytest.mark.parametrize(("error", "passed"), [(0.0, True), (1e-12, True), (1.0000001e-12, False), (math.nan, False)])
def test_a_tensor_passes_up_to_its_tolerance_and_never_with_nan(error, passed):
    check = TensorCheck("W", (2, 3), COMPLEX_STEP, 0, error, 1e-12, (1, 2), 0.25, 0.25)
    assert check.passed is passed


@pytest.mark.parametrize(
    ("checks", "verdict"),
    [
        ((GOOD,), OK),
        ((GOOD, UNCLEAR), CANNOT_TELL),
        ((UNKNOWN, GOOD), CANNOT_TELL),
        ((UNCLEAR, BAD, UNKNOWN), WRONG),
        ((), CANNOT_TELL),
    ],
)
def test_one_wrong_tensor_makes_a_report_wrong_and_one_unclear_tensor_keeps_it_from_passing(checks, verdict):
    assert report(*checks).verdict == verdict
    assert report(*checks).passed is (verdict == OK)
    assert report(*checks).failures == tuple(check for check in checks if check is BAD)


def test_a_tensor_without_any_derivative_is_neither_wrong_nor_the_worst():
    assert UNKNOWN.verdict == CANNOT_TELL
    assert report(UNKNOWN, GOOD).worst is GOOD
    assert (report(UNKNOWN, BAD).failures, report(UNKNOWN, UNCLEAR, BAD).unclear) == ((BAD,), (UNKNOWN, UNCLEAR))


def test_the_text_of_an_unclear_tensor_has_the_number_of_its_entries():
    assert str(UNCLEAR).endswith("1.0e-09  cannot tell (no derivative at 2 of 7 entries, nor at points nearby)")
    assert str(UNKNOWN).endswith("-  cannot tell (no derivative at 3 of 3 entries, nor at points nearby)")
    assert str(report(GOOD, UNCLEAR)).startswith("mine: cannot tell for 1 of 2 gradients (the forward is analytic)\n")


@pytest.mark.parametrize(
    ("checks", "worst"), [((BAD, NAN, GOOD), NAN), ((NAN, ALONG), NAN), ((ALONG, BAD, GOOD), BAD), ((GOOD, BAD), BAD)]
)
def test_the_worst_is_the_tensor_with_the_largest_error_and_nan_is_worse_than_every_number(checks, worst):
    assert report(*checks).worst is worst


def test_the_text_of_a_failure_has_name_shape_method_worst_index_got_and_expected():
    text = str(BAD)
    for part in ("inner.b ", "(4,)", "complex step", "every entry", "5.0e-01"):
        assert part in text
    assert "WRONG at inner.b[3]: got 1.5, expected -0.75" in text


def test_the_text_of_a_failure_along_a_direction_says_which():
    assert "WRONG at <dE, v2>: got 7.5, expected 6.25" in str(ALONG)
    assert "3 directions" in str(ALONG)


def test_the_text_of_a_report_has_its_verdict_its_reason_and_a_line_for_each_tensor():
    head, *lines = str(report(GOOD, BAD, NAN)).splitlines()
    assert head == "mine: 2 of 3 gradients WRONG (the forward is analytic)"
    assert lines == [f"  {check}" for check in (GOOD, BAD, NAN)]
    assert str(report(GOOD)).startswith("mine: passed (the forward is analytic)\n  W ")


def test_a_real_check_reports_the_planted_place_and_both_numbers():
    def backward(dy, x):
        dx = dy * np.cos(x)
        dx[1, 2, 3] += 5.0
        return dx

    worst = check_layer(Function(np.sin, backward), X).worst
    assert worst.index == (1, 2, 3)
    assert worst.shape == (2, 3, 4)
    assert abs(worst.got - worst.expected - 5.0) <= 1e-14
    assert f"input[1, 2, 3]: got {worst.got:.10g}, expected {worst.expected:.10g}" in str(worst)


def test_the_error_is_relative_to_the_largest_entry_of_the_tensor():
    def backward(dy, x):
        dx = dy * np.cos(x)
        dx[0, 0, 0] += 0.01 * np.abs(dx).max()
        return dx

    assert abs(check_layer(Function(np.sin, backward), X).worst.error - 0.01) <= 1e-14


@pytest.mark.parametrize(("method", "max_entries"), [(RICHARDSON, 300), (COMPLEX_STEP, 4)])
def test_the_report_of_a_real_check_survives_json(method, max_entries):
    found = check_layer(Affine(), X[:1], method=method, max_entries=max_entries, vary=False)
    again = json.loads(json.dumps(found.as_dict(), allow_nan=False))
    assert again["name"] == "Affine"
    assert again["passed"] is True
    assert again["reason"] == found.reason
    for check, entry in zip(found.checks, again["checks"], strict=True):
        assert (entry.pop("passed"), entry.pop("verdict")) == (True, OK)
        assert {**entry, "shape": tuple(entry["shape"]), "index": tuple(entry["index"])} == vars(check)


def test_the_form_for_programs_says_what_failed():
    form = report(GOOD, BAD).as_dict()
    assert (form["passed"], form["verdict"]) == (False, WRONG)
    assert [check["passed"] for check in form["checks"]] == [True, False]
    assert json.loads(json.dumps(report(UNKNOWN).as_dict(), allow_nan=False))["checks"][0]["tolerance"] is None

"""Damaged files end with a right result or a refusal in one line.

Each tier tries more of them, and `python -m tests.refusals` as many as you like.
"""

import pytest

from tests.refusals.__main__ import TARGETS, failures
from tests.refusals.drawn_files import Good
from tests.refusals.ending import REFUSED, SUCCESS

CASES = [60, pytest.param(300, marks=pytest.mark.exhaustive), pytest.param(3000, marks=pytest.mark.weekly)]


@pytest.fixture(scope="module")
def good(tmp_path_factory):
    """Sound files."""
    return Good(tmp_path_factory.mktemp("good"))


@pytest.mark.parametrize("cases", CASES)
@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.__name__)
def test_every_case_ends_with_a_right_result_or_a_refusal_in_one_line(target, cases, good):
    endings, failed = failures(target, range(cases), good)
    assert failed == {}
    assert set(endings) == {SUCCESS, REFUSED}, "both are tried"

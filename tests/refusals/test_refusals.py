"""Each bad input gets a one-line message, status 2 or the right exception, and leaves no half-written files."""

import pytest

from minitransformer.cli import main
from tests.refusals.cases import all_cases
from tests.refusals.page import messages_of_today, read_messages
from tests.refusals.trying import is_one_line, trier

CASES = all_cases()


def by_name(cases):
    return pytest.mark.parametrize("case", cases, ids=lambda case: case.name)


@by_name([case for case in CASES if not case.call])
def test_command_line_gets_one_line_and_status_2_and_nothing_is_written(case):
    outcome = trier().try_case(case)
    assert outcome.status == 2, outcome
    assert is_one_line(outcome.message)
    assert "Traceback" not in outcome.message
    assert "[Errno" not in outcome.message
    assert case.late or outcome.out == ""
    left = {name for name, data in outcome.written.items() if data is not None and not name.endswith("config.json")}
    assert left == set(), "no half-written file"
    assert case.late or outcome.written == {}, "not even a folder"


@by_name([case for case in CASES if case.call])
def test_library_raises_the_right_exception_with_a_one_line_message(case):
    outcome = trier().try_case(case)
    assert type(outcome.error) is case.raises, outcome
    assert outcome.message
    assert "\n" not in outcome.message
    assert outcome.written == {}


def test_debug_shows_the_traceback(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(FileNotFoundError, match=r"^there is no file missing\.txt$"):
        main(["train", "shakespeare", "--text", "missing.txt", "--debug"])


@pytest.mark.exhaustive
def test_messages_are_those_on_record():
    recorded = read_messages()
    assert messages_of_today() == recorded, "record them again: python -m tests.refusals.page"
    assert list(recorded) == [case.name for case in CASES]

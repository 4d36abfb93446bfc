"""The test of the tests: each bug of the museum is planted in the library, and at least one real test must fail.

`pytest tests/museum` prints which one did. It stops at the first; with MUSEUM=all in the environment it runs all that
could, and prints all that did, which takes ten minutes and more.
"""

import os

import pytest

from tests.museum.detectors import DETECTORS, detectors_for
from tests.museum.exhibits import EQUIVALENT, EXHIBITS

RUN_ALL = os.environ.get("MUSEUM") == "all"

each_exhibit = pytest.mark.parametrize("exhibit", EXHIBITS, ids=lambda exhibit: exhibit.name)


def alarms(exhibit):
    """What fails while the bug is planted: "detector: first failing check", one detector after the other."""
    with exhibit.planted():
        for detector in detectors_for(exhibit):
            alarm = detector.first_alarm()
            if alarm:
                yield f"{detector.name}: {alarm}"


@each_exhibit
def test_the_bug_is_caught(exhibit, record_property):
    found = alarms(exhibit)
    caught_by = list(found) if RUN_ALL else [next(found, None)]
    found.close()
    record_property("caught", (exhibit.name, caught_by))
    assert caught_by not in ([], [None]), "no test sees this bug"


# stands behind the bugs, so that it also finds what one of them might have left behind
@pytest.mark.parametrize("detector", DETECTORS, ids=lambda detector: f"{detector.level}, {detector.name}")
def test_the_library_as_it_is_sets_off_no_alarm(detector):
    detector.run()


@pytest.mark.parametrize("exhibit", EQUIVALENT, ids=lambda exhibit: exhibit.name)
def test_a_change_that_changes_nothing_sets_off_no_alarm(exhibit):
    with exhibit.planted():
        for detector in DETECTORS:
            if detector.level == exhibit.level:
                detector.run()


def test_every_exhibit_has_a_name_and_a_change_of_its_own():
    everything = EXHIBITS + EQUIVALENT
    assert len({exhibit.name for exhibit in everything}) == len(everything)
    assert len({(exhibit.function, exhibit.old, exhibit.new) for exhibit in everything}) == len(everything)
    assert all(exhibit.lesson for exhibit in everything)

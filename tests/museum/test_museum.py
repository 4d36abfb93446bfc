"""The test of the tests: each bug of the museum is planted in the library, and a real test must find it.

The table caught_by.json names one check for each bug, and only that check runs, so that the whole museum takes seconds.
`pytest tests/museum` prints the table. `pytest tests/museum --exhaustive` looks for each bug without the table.
"""

import pytest

from minitransformer.exercises.planting import PARTS
from tests.museum.checks import find_check
from tests.museum.exhibits import EQUIVALENT, EXHIBITS
from tests.museum.search import catch, plain, read_table, search
from tests.museum.second_order import STILL_A_GRADIENT, verdicts

TABLE = read_table()

each_exhibit = pytest.mark.parametrize("exhibit", EXHIBITS, ids=lambda exhibit: exhibit.name)
each_equivalent = pytest.mark.parametrize("exhibit", EQUIVALENT, ids=lambda exhibit: exhibit.name)


def parts(exhibit):
    """All that a bug may change of its functions."""
    functions = [exhibit.function, *(function for function, _, _ in exhibit.also)]
    return [getattr(plain(function), part) for function in functions for part in PARTS]


@each_exhibit
def test_the_bug_is_caught(exhibit, request):
    before = parts(exhibit)
    name = catch(exhibit, TABLE)
    request.node.user_properties.append(("caught", f"{exhibit.name}\n    {name}"))
    assert all(now is then for now, then in zip(parts(exhibit), before, strict=True))


def test_the_table_has_no_entry_without_a_bug():
    assert TABLE.keys() <= {exhibit.name for exhibit in EXHIBITS}


@each_equivalent
def test_a_change_that_changes_nothing_sets_off_no_alarm(exhibit):
    """Neither of the checks that find the bugs of the same file."""
    names = {TABLE.get(bug.name) for bug in EXHIBITS if bug.function.__module__ == exhibit.function.__module__} - {None}
    assert names
    with exhibit.planted():
        for name in names:
            find_check(name).run()


@pytest.mark.exhaustive
@each_exhibit
def test_the_bug_is_found_without_the_table(exhibit):
    assert next(search(exhibit), None), "no test sees this bug"


@pytest.mark.exhaustive
@each_equivalent
def test_a_change_that_changes_nothing_sets_off_no_alarm_of_its_level(exhibit):
    """Tests of other levels may compare the last bit with that of another way to compute the same."""
    assert list(search(exhibit, levels=[exhibit.level])) == []


@pytest.mark.exhaustive
@each_exhibit
def test_a_wrong_gradient_is_not_symmetric_unless_it_is_that_of_another_function(exhibit):
    """Only bugs that the first-order check of the same rows finds are wrong gradients."""
    wrong, asymmetric = verdicts(exhibit)
    assert (wrong is not None and asymmetric is None) == (exhibit.name in STILL_A_GRADIENT)


def test_every_gradient_of_another_function_is_an_exhibit():
    assert STILL_A_GRADIENT.keys() <= {exhibit.name for exhibit in EXHIBITS}


def test_every_exhibit_has_a_name_and_a_change_of_its_own():
    everything = EXHIBITS + EQUIVALENT
    assert len({exhibit.name for exhibit in everything}) == len(everything)
    assert len({(exhibit.function, exhibit.old, exhibit.new) for exhibit in everything}) == len(everything)
    assert all(exhibit.lesson for exhibit in everything)

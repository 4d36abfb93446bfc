"""The test of the tests: each bug of the museum is planted in the library, and a real test must find it.

The table caught_by.json names one check for each bug, and only that check runs, so that the whole museum takes seconds.
"""

import inspect
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import minitransformer as mt
from minitransformer.decoding import generate_from
from minitransformer.exercises.planting import PARTS
from tests.museum.exhibits import EXHIBITS, PATIENTS
from tests.museum.page import GROUPS, exhibits, linked, summary
from tests.museum.search import catch, read_table
from tests.tiers import some

TABLE = read_table()
BUGS = {exhibit.name: exhibit for exhibit in (*PATIENTS, *EXHIBITS)}


def parts(exhibit):
    """All that a bug may change of its functions."""
    functions = [inspect.unwrap(getattr(function, "__func__", function)) for function in exhibit.functions]
    return [getattr(function, part) for function in functions for part in PARTS]


@pytest.mark.parametrize("exhibit", some(BUGS.values(), 3), ids=BUGS)
def test_the_bug_is_caught(exhibit):
    before = parts(exhibit)
    catch(exhibit, TABLE)
    assert all(now is then for now, then in zip(parts(exhibit), before, strict=True))


def test_the_table_names_a_test_for_every_bug_and_for_nothing_else():
    assert TABLE.keys() == BUGS.keys()


def test_every_exhibit_has_a_name_a_lesson_and_a_change_of_its_own_and_says_where_it_was_published():
    assert len({exhibit.name for exhibit in EXHIBITS}) == len(EXHIBITS)
    assert len({repr(exhibit.changes) for exhibit in EXHIBITS}) == len(EXHIBITS)
    assert all(exhibit.lesson and exhibit.source for exhibit in EXHIBITS)


def test_eight_of_the_ten_patients_of_lesson_15_are_exhibits():
    assert len(PATIENTS) == 10
    assert len(PATIENTS) + len(EXHIBITS) - len(BUGS) == 8


class Script:
    """A decoding state whose most likely tokens are the columns of a table."""

    def __init__(self, tokens):
        self.columns = iter(np.transpose(tokens))

    def extend(self, ids):
        return np.eye(9)[next(self.columns)]


@pytest.mark.parametrize("patient", PATIENTS, ids=lambda patient: patient.name)
def test_a_patient_can_be_trained_and_only_one_stops_with_the_first_row(patient):
    task = mt.get_task("reverse")
    batch, rows = task.batch(np.random.default_rng(0), 4), [[5, 2, 5, 5], [5, 5, 5, 2]]
    with patient.planted():
        model = mt.Transformer(mt.named_config("tiny", len(task.vocabulary)))
        mt.training_step(model, mt.CrossEntropyLoss(), mt.Adam(model.parameters()), batch)
        ids = generate_from(Script(rows), np.ones((2, 1), int), 4).ids
    assert ids.shape[1] == (2 if "decoding stops" in patient.name else 4)


def test_the_page_of_the_museum_shows_each_exhibit_with_its_change_its_source_and_its_test():
    entries = {entry[:-1].partition(".** ")[0].lower(): entry for entry in exhibits().split("\n**")[1:]}
    assert entries.keys() == {exhibit.name.lower() for exhibit in EXHIBITS}
    assert [exhibit for group in GROUPS.values() for exhibit in group] == list(EXHIBITS)
    for exhibit in EXHIBITS:
        entry = entries[exhibit.name.lower()]
        assert re.search(r"```diff\n- .*\n(?:.*\n)*\+ .*\n", entry), exhibit.name
        assert f"Published: {linked(exhibit.source)}." in entry
        assert TABLE[exhibit.name].rpartition("::")[2].partition("[")[0].rpartition(": ")[2] in entry
    assert summary().startswith(f"{len(EXHIBITS)} bugs from ")


@pytest.mark.exhaustive
def test_the_exhibits_can_be_shown_without_pytest():
    code = "import sys; from tests.museum.page import EXHIBITS; sys.exit('pytest' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], cwd=Path(__file__).parents[2], check=True)

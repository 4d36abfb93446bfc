"""Proves that our adapters compute what PEFT's did, from stored values; their library is not needed."""

import functools

import pytest

from tests.oracle.peft_cases import BOUND, PATH, TARGETS, Problem, Solution, errors_of_loading, write_folder
from tests.oracle.problems import assert_all_within
from tests.oracle.reference_file import read


@functools.cache
def stored():
    """All values in the file, as nested dicts, and the version that made them."""
    return read(PATH)


def test_the_file_has_just_the_cases_and_names_the_version_that_solved_them():
    tree, made_with = stored()
    assert set(tree) == set(TARGETS)
    assert made_with.startswith("peft 0.")
    assert PATH.stat().st_size < 150_000


@pytest.mark.parametrize("name", TARGETS)
def test_logits_and_the_gradients_of_all_adapters_equal_the_stored_ones(name, tmp_path, record_property):
    tree, _ = stored()
    problem, solution = Problem(**tree[name]["problem"]), Solution(**tree[name]["solution"])
    write_folder(tmp_path, problem.adapters)
    assert_all_within(BOUND, errors_of_loading(name, problem, solution, tmp_path), name, record_property)

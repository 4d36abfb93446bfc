"""Proves that our GPT, BERT and T5 compute what Hugging Face's did, from stored values; their library is not needed.

Their weights are stored by their names, so that each comparison also proves the conversion. All in float64, without
dropout, with padding and segments where there are any.
"""

import functools

import pytest

from tests.oracle.huggingface_cases import BOUND, CASES, PATH, Problem, Solution, errors
from tests.oracle.problems import assert_all_within
from tests.oracle.reference_file import read


@functools.cache
def stored():
    """All values in the file, as nested dicts, and the versions that made them."""
    return read(PATH)


def test_the_file_has_just_the_cases_and_names_the_version_that_solved_them():
    tree, made_with = stored()
    assert set(tree) == set(CASES)
    assert made_with.startswith("transformers 5.")
    assert PATH.stat().st_size < 300_000


@pytest.mark.parametrize("name", CASES)
def test_logits_and_every_gradient_equal_the_stored_ones(name, record_property):
    tree, _ = stored()
    problem, solution = Problem(**tree[name]["problem"]), Solution(**tree[name]["solution"])
    assert_all_within(BOUND, errors(CASES[name], problem, solution), name, record_property)

"""Proves that our layers and training compute what PyTorch did, from values stored by `tests/reference`; no torch.

The stored problems are float64 without dropout, with padding, causal masks, repeated ids and label smoothing on.
"""

import numpy as np
import pytest

from minitransformer.gradcheck.subjects import SUBJECTS
from minitransformer.interop.pytorch import from_pytorch, to_pytorch
from tests.helpers import relative_error
from tests.oracle import training
from tests.oracle.cases import CONVERTED, REFERENCE_CASES, REFERENCE_SIZES
from tests.oracle.problems import BOUND, assert_all_within, errors, solve_ours
from tests.oracle.reference_file import PATH, read, read_case, read_training
from tests.oracle.theirs import configuration

CONFIG = configuration(REFERENCE_SIZES, SUBJECTS[CONVERTED].switches)


@pytest.fixture(scope="module")
def stored():
    """All values in the file, as nested dicts."""
    return read()[0]


def test_the_file_has_just_the_reference_cases_and_names_the_version_that_solved_them(stored):
    assert set(stored) == {*REFERENCE_CASES, "training", "state_dict"}
    assert read()[1].startswith("torch 2.")
    assert PATH.stat().st_size < 300_000


@pytest.mark.parametrize("name", REFERENCE_CASES)
def test_output_and_every_gradient_equal_the_stored_ones(name, stored, record_property):
    numbers, expected = read_case(stored, name)
    found = errors(solve_ours(name, REFERENCE_SIZES, numbers), expected)
    assert_all_within(BOUND, found, name, record_property)


def test_ten_training_steps_equal_the_stored_ones(stored, record_property):
    start, expected = read_training(stored)
    found = training.run_errors(training.train_ours(start), expected)
    assert_all_within(BOUND, found, "ten training steps", record_property)


def test_the_training_loop_does_what_the_stored_steps_did(stored, record_property):
    start, expected = read_training(stored)
    found = training.run_errors(training.train_with_our_loop(start), expected)
    assert_all_within(BOUND, found, "ten training steps, our loop", record_property)


def test_the_stored_training_has_steps_that_are_clipped_and_steps_that_are_not(stored):
    clipped = read_training(stored)[1].norms > training.SETTINGS.max_norm
    assert clipped.any()
    assert not clipped.all()


def test_training_moves_a_key_bias_by_rounding_noise_only(stored):
    # a gradient of any size would move it by about the learning rate in each step, by 0.1 in all
    start, _ = read_training(stored)
    before, after = (training.key_biases(weights) for weights in (start.weights, training.train_ours(start).weights))
    assert len(before) == 6
    assert max(relative_error(after[name], before[name]) for name in before) <= 1e-6


def test_weights_have_the_stored_names_and_entries_in_pytorchs_layout(stored):
    weights, theirs = read_case(stored, CONVERTED)[0].weights, stored["state_dict"]
    got = to_pytorch(weights, CONFIG)
    assert set(got) == set(theirs)
    assert all(np.array_equal(got[name], theirs[name]) for name in theirs)


def test_weights_in_pytorchs_layout_become_all_weights_except_the_embeddings(stored):
    weights, theirs = read_case(stored, CONVERTED)[0].weights, stored["state_dict"]
    got = from_pytorch(theirs, CONFIG)
    assert set(got) == set(weights) - {"source_embedding.tokens.E"}
    assert all(np.array_equal(got[name], weights[name]) for name in got)

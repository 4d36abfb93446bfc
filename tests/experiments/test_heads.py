"""What heads look at: the three rules by hand on small sentences, and the sums by loops."""

import numpy as np
import pytest

from experiments import heads
from tests.helpers import random_host_array

TOKENS = ["Als", " der", " Mann", " kam", ",", " sah", " er", " sein", " H", "aus", ".", "<eos>"]


def test_the_distance_of_two_tokens_is_counted_in_both_directions():
    assert heads.distances(["a", " b", " c"]).tolist() == [[0, 1, 2], [1, 0, 1], [2, 1, 0]]


def test_antecedents_of_a_pronoun_are_the_capitalised_words_before_it_and_not_the_first():
    found = heads.antecedents(TOKENS)
    queries = [i for i, row in enumerate(found) if not np.isnan(row).any()]
    assert [TOKENS[i] for i in queries] == [" er", " sein"]
    assert all(np.flatnonzero(found[i]).tolist() == [TOKENS.index(" Mann")] for i in queries)


def test_the_beginning_of_a_longer_word_is_no_pronoun():
    assert np.isnan(heads.antecedents(["Der", " Mann", " er", "hob", " sich"])).all()


def test_a_clause_ends_with_its_comma_and_a_sentence_of_one_clause_says_nothing():
    same = heads.clauses(TOKENS)
    comma = TOKENS.index(",")
    expected = [[(i <= comma) == (j <= comma) for j in range(len(TOKENS))] for i in range(len(TOKENS))]
    np.testing.assert_array_equal(same, expected)
    assert np.isnan(heads.clauses(["Er", " kam", ".", "<eos>"])).all()


def test_the_number_of_a_head_is_the_mean_of_weighted_values_over_the_queries_that_have_any():
    rng = np.random.default_rng(0)
    weights, values = random_host_array(rng, 3, 5, 5), random_host_array(rng, 5, 5).copy()
    values[[1, 4]] = np.nan
    found = heads.measure(weights, values)
    for head in range(3):
        sums = [sum(weights[head, i, j] * values[i, j] for j in range(5)) for i in (0, 2, 3)]
        assert found[head] == pytest.approx(sum(sums) / 3)
    assert np.isnan(heads.measure(weights, np.full((5, 5), np.nan))).all()

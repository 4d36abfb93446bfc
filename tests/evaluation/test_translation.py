"""Scores of translations: those of sacrebleu, on the sentences that they should be of."""

import itertools

import pytest

from minitransformer.evaluation.translation import bleu_by_length, frequent_words, score

REFERENCES = [
    "The cat is on the mat in the small house.",
    "A dog was seen near the river by two men.",
    "There were three birds in the old tree.",
]
TRANSLATIONS = [
    "The cat is on the mat in the small house.",
    "A dog was seen near the sea by two men.",
    "Three birds were there.",
]


def test_score_of_the_references_themselves_is_100():
    scores = score(REFERENCES, REFERENCES)
    assert (round(scores.bleu, 9), round(scores.chrf, 9), scores.interval) == (100.0, 100.0, 0.0)


def test_score_is_bleu_as_defined_by_papineni():
    """n-grams counted by hand: clipped matches and totals of the orders 1 to 4, and the brevity penalty."""
    translation, reference = "the cat sat on the mat today", "the cat is on the mat with the dog today"
    precisions = [6 / 7, 3 / 6, 1 / 5]  # unigrams all but "sat"; "the cat", "on the", "the mat"; "on the mat"
    fourth = 1 / (2 * 4)  # no match of 4 words: sacrebleu counts half a match (smoothing "exp")
    brevity = 2.718281828459045 ** (1 - 10 / 7)
    expected = 100 * brevity * (precisions[0] * precisions[1] * precisions[2] * fourth) ** 0.25
    assert score([translation], [reference]).bleu == pytest.approx(expected, rel=1e-12)


def test_signature_names_case_tokens_and_bootstrap():
    signature = score(TRANSLATIONS, REFERENCES).signature
    assert all(part in signature for part in ("case:mixed", "tok:13a", "bs:1000", "version:"))


def test_interval_shrinks_with_more_sentences():
    few, many = (score(TRANSLATIONS * times, REFERENCES * times).interval for times in (2, 32))
    assert 0 < 2.5 * many < few


def test_groups_by_length_hold_every_sentence_once_and_equal_lengths_together():
    sources = ["a b", "a", "a b c d e f", "a b", "a b c", "a b c d", "a b", "a b c d e f g"]
    references = ["the house is very large"] * len(sources)
    translations = ["the house is very large" if len(source) < 6 else "a bad answer" for source in sources]
    groups = bleu_by_length(sources, translations, references, buckets=4)
    assert sum(group.sentences for group in groups) == len(sources)
    bounds = [(group.shortest, group.longest) for group in groups]
    assert bounds[0][0] == 1
    assert bounds[-1][1] == 7
    assert all(one[1] < other[0] for one, other in itertools.pairwise(bounds))
    assert groups[0].bleu == pytest.approx(100.0)
    assert groups[-1].bleu < 50


def test_frequent_words_are_those_of_the_training_targets():
    answers = frequent_words(["eins zwei drei", "eins"], ["the man and the dog", "and the cat", "the end"])
    assert answers == ["the and man", "the"]

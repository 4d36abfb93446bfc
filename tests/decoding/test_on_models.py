"""Decoding with real models: what is said step by step has the probability that the whole model gives it."""

import numpy as np
import pytest

from minitransformer.decoding import Sampling, beam_search, decoding_state, generate_from, length_penalty
from tests.decoding.scripted import BOS, naive_log_softmax
from tests.helpers import host, relative_error
from tests.models.test_behaviour import build_random

SOURCES = np.array([[3, 8, 4, 0, 0], [7, 5, 9, 4, 10], [6, 6, 0, 0, 0]])


def log_probs_of(logits, ids):
    """The log probability of each of ids (B, T), where logits (B, T, V) of a whole model stand for each of them."""
    rows = zip(host(logits).tolist(), ids.tolist(), strict=True)
    return np.array([[naive_log_softmax(line)[i] for line, i in zip(*row, strict=True)] for row in rows])


@pytest.mark.parametrize("sampled", [False, True])
def test_log_probs_of_a_transformers_answers_equal_the_whole_models(sampled):
    model, bos = build_random("post", False), np.full((3, 1), BOS)
    choose = Sampling(np.random.default_rng(3), temperature=0.6, top_k=4) if sampled else None
    ids, log_probs = generate_from(decoding_state(model, SOURCES, 7), bos, 7, choose, eos=None)
    expected = log_probs_of(model(SOURCES, np.concatenate([bos, ids[:, :-1]], axis=1)), ids)
    assert relative_error(log_probs, expected) <= 1e-12
    assert relative_error(log_probs.sum(axis=1), expected.sum(axis=1)) <= 1e-12


@pytest.mark.parametrize("beam", [2, 4])
def test_beam_search_gives_each_source_of_a_batch_the_answers_it_gets_alone(beam):
    model = build_random("post", False)
    together = beam_search(decoding_state(model, SOURCES, 6), 3, 6, BOS, beam=beam)
    for source, hypotheses in zip(SOURCES, together, strict=True):
        (alone,) = beam_search(decoding_state(model, source[source != 0][None], 6), 1, 6, BOS, beam=beam)
        assert [got.ids for got in hypotheses] == [expected.ids for expected in alone]
        for field in ("log_prob", "score"):
            got, expected = (np.array([getattr(one, field) for one in some]) for some in (hypotheses, alone))
            assert relative_error(got, expected) <= 1e-12


def test_log_prob_of_a_hypothesis_equals_the_whole_models():
    model, beam = build_random("pre", True), 5
    found = beam_search(decoding_state(model, SOURCES, 6), 3, 6, BOS, beam=beam)
    assert len({hypothesis.ids for hypotheses in found for hypothesis in hypotheses}) > 10
    for source, hypotheses in zip(SOURCES, found, strict=True):
        for ids, log_prob, score in hypotheses:
            logits = model(source[None], np.array([[BOS, *ids[:-1]]]))
            expected = log_probs_of(logits, np.array([ids])).sum()
            assert relative_error(np.array(log_prob), expected) <= 1e-12
            assert relative_error(np.array(score), expected / length_penalty(len(ids))) <= 1e-12

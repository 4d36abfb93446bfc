"""Beam search against the list of all sequences, and against greedy decoding.

A beam as wide as the list drops nothing, so its answer must be the best of all sequences.
"""

import itertools
import math

import numpy as np
import pytest

from minitransformer.decoding import beam_search, generate_from, length_penalty
from minitransformer.decoding.search.beam import _largest
from tests.decoding.scripted import (
    BOS,
    EOS,
    ScriptedState,
    naive_log_prob,
    random_script,
    script,
)

pytestmark = (
    pytest.mark.host_only
)  # what a model says is on the host already; tests/decoding/test_on_models.py has models
SIZES = [(4, 1), (4, 4), (5, 2)]  # (V, most tokens)
ALPHAS = [0.0, 0.6, 2.0, -0.5]

every_alpha = pytest.mark.parametrize("alpha", ALPHAS)


def search(logits_of, max_new_tokens, beam, sources=(0,), **options):
    """The hypotheses of each source, and how often the state was extended."""
    state = ScriptedState(logits_of, sources)
    return beam_search(state, len(sources), max_new_tokens, BOS, beam=beam, **options), state.steps


def all_sequences(V, max_new_tokens, eos=EOS):
    """All possible answers: up to the first eos, or up to max_new_tokens."""
    others = [token for token in range(V) if token != eos]
    for length in range(1, max_new_tokens + 1):
        for beginning in itertools.product(others, repeat=length - 1):
            for token in range(V) if length == max_new_tokens else [eos]:
                if token is not None:
                    yield (*beginning, token)


def naive_penalty(length, alpha):
    return math.pow((5 + length) / 6, alpha)


def ranked(logits_of, V, max_new_tokens, alpha, source=0, eos=EOS):
    """(score, ids, log_prob) of all sequences, the best first."""
    everything = []
    for ids in all_sequences(V, max_new_tokens, eos):
        log_prob = sum(naive_log_prob(logits_of, source, ids))
        everything.append((log_prob / naive_penalty(len(ids), alpha), ids, log_prob))
    return sorted(everything, reverse=True)


def wide_enough(V, max_new_tokens):
    """As many as there are extensions in the last step."""
    return (V - 1) ** (max_new_tokens - 1) * V


def check_same(got, score, ids, log_prob):
    assert got.ids == ids
    assert abs(got.log_prob - log_prob) <= 1e-12 * abs(log_prob)
    assert abs(got.score - score) <= 1e-12 * abs(score)


@pytest.mark.parametrize(
    ("length", "alpha", "expected"), [(1, 0.6, 1.0), (7, 0.6, 2**0.6), (13, 1.0, 3.0), (9, 0, 1.0)]
)
def test_length_penalty_is_the_papers(length, alpha, expected):
    assert abs(length_penalty(length, alpha) - expected) <= 1e-15 * expected
    assert length_penalty(length) == ((5 + length) / 6) ** 0.6


@every_alpha
@pytest.mark.parametrize(("V", "max_new_tokens"), SIZES)
def test_wide_beam_finds_the_best_of_all_sequences(V, max_new_tokens, alpha):
    for seed in range(2):
        logits_of = random_script(seed, V)
        (hypotheses,), _ = search(logits_of, max_new_tokens, wide_enough(V, max_new_tokens), alpha=alpha)
        check_same(hypotheses[0], *ranked(logits_of, V, max_new_tokens, alpha)[0])


@every_alpha
@pytest.mark.parametrize(("V", "max_new_tokens"), SIZES[1:])
def test_without_early_stopping_a_wide_beam_ranks_all_sequences(V, max_new_tokens, alpha, monkeypatch):
    monkeypatch.setattr("minitransformer.decoding.search.beam._is_done", lambda *state: False)
    logits_of = random_script(7, V)
    (hypotheses,), steps = search(logits_of, max_new_tokens, wide_enough(V, max_new_tokens), alpha=alpha)
    expected = ranked(logits_of, V, max_new_tokens, alpha)
    assert steps == max_new_tokens
    assert len(hypotheses) == len(expected)
    for got, row in zip(hypotheses, expected, strict=True):
        check_same(got, *row)


def test_without_eos_all_answers_have_max_new_tokens():
    V, max_new_tokens, beam = 4, 3, 64
    logits_of = random_script(8, V)
    (hypotheses,), _ = search(logits_of, max_new_tokens, beam, alpha=0.6, eos=None)
    expected = ranked(logits_of, V, max_new_tokens, 0.6, eos=None)
    assert len(hypotheses) == len(expected) == V**max_new_tokens
    for got, row in zip(hypotheses, expected, strict=True):
        check_same(got, *row)


# greedy takes 3, which is likely, but all that can follow is not; 4 is better in the end
GARDEN_PATH = {
    (): {3: 0.6, 4: 0.4},
    (3,): {3: 0.35, 4: 0.33, EOS: 0.32},
    (4,): {EOS: 0.9, 3: 0.1},
}


@pytest.mark.parametrize("alpha", [0.0, 0.6])
def test_beam_finds_what_greedy_misses(alpha):
    logits_of = script(GARDEN_PATH, 5)
    greedy = generate_from(ScriptedState(logits_of, [0]), np.array([[BOS]]), 4)
    assert greedy.ids.tolist() == [[3, 3, EOS]]
    (hypotheses,), _ = search(logits_of, 4, beam=2, alpha=alpha)
    log_prob = math.log(0.4 * 0.9)
    check_same(hypotheses[0], log_prob / naive_penalty(2, alpha), (4, EOS), log_prob)
    assert log_prob > greedy.log_probs.sum()


# two beginnings push out a third, greedy's own, which would have gone on with certainty
LOST_PATH = {
    (): {3: 0.4, 4: 0.35, 5: 0.25},
    (3,): {3: 0.34, 4: 0.33, 5: 0.33},
    (3, 3): {EOS: 1.0},
    (5,): {3: 0.34, 4: 0.33, 5: 0.33},
    (4,): {3: 0.5, 4: 0.5},
    (4, 3): {3: 0.26, 4: 0.25, 5: 0.25, EOS: 0.24},
    (4, 4): {3: 0.26, 4: 0.25, 5: 0.25, EOS: 0.24},
}


def test_wider_beam_is_no_promise_it_can_lose_what_greedy_finds():
    logits_of = script(LOST_PATH, 6)
    found = [search(logits_of, 4, beam, alpha=0.0)[0][0][0] for beam in (1, 2, 3)]
    assert [hypothesis.ids[:2] for hypothesis in found] == [(3, 3), (4, 3), (3, 3)]
    assert found[1].log_prob < found[0].log_prob - 0.5
    assert found[2] == found[0]


@pytest.mark.parametrize("V", [4, 9])
def test_beam_of_one_without_length_penalty_is_greedy(V):
    lengths = set()
    for seed in range(20):
        logits_of = random_script(seed, V)
        ids, log_probs = generate_from(ScriptedState(logits_of, [0]), np.array([[BOS]]), 6)
        (hypotheses,), steps = search(logits_of, 6, beam=1, alpha=0.0)
        check_same(hypotheses[0], log_probs.sum(), tuple(ids[0].tolist()), log_probs.sum())
        assert steps == ids.shape[1]
        lengths.add(steps)
    assert len(lengths) > 3


@every_alpha
@pytest.mark.parametrize("beam", [1, 2, 4])
def test_early_stopping_saves_steps_and_never_changes_the_answer(alpha, beam, monkeypatch):
    def run():
        return [search(random_script(seed, 5, scale=2.5), 7, beam, alpha=alpha) for seed in range(8)]

    early = run()
    monkeypatch.setattr("minitransformer.decoding.search.beam._is_done", lambda alive, *state: not alive)
    late = run()
    for ((got,), _), ((expected,), _) in zip(early, late, strict=True):
        assert got[0] == expected[0]
        assert {*got} <= {*expected}
    saved = sum(steps_late - steps for (_, steps), (_, steps_late) in zip(early, late, strict=True))
    assert saved > 0 or alpha == 2.0, "the examples must show something"


@pytest.mark.parametrize("beam", [1, 2, 5])
@every_alpha
def test_several_sources_at_once_give_what_each_gives_alone(beam, alpha):
    logits_of, sources = random_script(9, 6), (4, 0, 7, 2, 2)
    together, _ = search(logits_of, 6, beam, sources, alpha=alpha)
    assert len({len(hypotheses[0].ids) for hypotheses in together}) > 1, "they must end at different times"
    for source, hypotheses in zip(sources, together, strict=True):
        (alone,), _ = search(logits_of, 6, beam, (source,), alpha=alpha)
        assert hypotheses == alone


def test_a_source_is_read_once_and_its_rows_leave_when_it_is_done():
    table = {(): {3: 0.6, 4: 0.4}} | {
        said: {3: 0.5, 4: 0.5} for n in (1, 2) for said in itertools.product((3, 4), repeat=n)
    }
    sure, unsure = script({}, 5), script(table, 5)
    state = ScriptedState(lambda source, said: (sure if source in (1, 3) else unsure)(source, said), range(5))
    found = beam_search(state, 5, 4, BOS, beam=2, alpha=0.0)
    assert state.sizes == [5, 6, 6, 6]
    assert [len(hypotheses[0].ids) for hypotheses in found] == [4, 1, 4, 1, 4]


@every_alpha
def test_each_sequence_may_have_a_limit_of_its_own(alpha):
    logits_of, sources, limits = random_script(5, 6), (3, 1, 4, 1, 5), (2, 6, 1, 3, 4)
    state = ScriptedState(logits_of, sources)
    together = beam_search(state, 5, limits, BOS, beam=3, alpha=alpha)
    for source, limit, hypotheses in zip(sources, limits, together, strict=True):
        (alone,), _ = search(logits_of, limit, 3, (source,), alpha=alpha)
        assert hypotheses == alone


@pytest.mark.parametrize(("beam", "max_new_tokens"), [(0, 4), (-1, 4), (2, 0), (2, -5)])
def test_beam_or_max_new_tokens_below_1_is_refused(beam, max_new_tokens):
    name, value = ("beam", beam) if beam < 1 else ("max_new_tokens", max_new_tokens)
    with pytest.raises(ValueError, match=f"^{name} must be at least 1, got {value}$"):
        beam_search(ScriptedState(random_script(0, 4), [0]), 1, max_new_tokens, BOS, beam=beam)


def test_without_sequences_there_is_nothing_to_search():
    assert beam_search(ScriptedState(random_script(0, 4), []), 0, 4, BOS) == []


def test_the_defaults_are_those_of_the_paper():
    logits_of = random_script(3, 9)
    state = ScriptedState(logits_of, [0])
    assert beam_search(state, 1, 5, BOS) == search(logits_of, 5, beam=4, alpha=0.6, eos=EOS)[0]
    assert state.sizes[:2] == [1, 4]


@pytest.mark.parametrize("alpha", [0.0, -1.0])
def test_a_hypothesis_that_cannot_become_better_than_the_best_finished_one_is_not_continued(alpha):
    logits_of = script({(): {3: 0.5, EOS: 0.5}}, 5)
    (hypotheses,), steps = search(logits_of, 6, beam=2, alpha=alpha)
    assert hypotheses[0].ids == (EOS,)
    assert steps == 1


def test_with_a_length_penalty_a_long_answer_can_still_win_at_its_greatest_length():
    table = {(): {EOS: 0.6, 3: 0.4}} | {(3,) * n: {3: 1.0} for n in range(1, 7)}
    (hypotheses,), _ = search(script(table, 5), 7, beam=2, alpha=1.0)
    check_same(hypotheses[0], math.log(0.4) / 2, (3,) * 7, math.log(0.4))  # (5 + 7) / 6 = 2


def test_with_a_reward_for_short_answers_the_next_token_can_still_win():
    table = {(): {EOS: 0.36, 3: 0.45, 4: 0.19}, (3,): {EOS: 1.0}}
    (hypotheses,), _ = search(script(table, 5), 7, beam=2, alpha=-1.0)
    check_same(hypotheses[0], math.log(0.45) * 7 / 6, (3, EOS), math.log(0.45))


@pytest.mark.parametrize("count", [1, 2, 8])
@pytest.mark.parametrize("length", [1, 65, 1003])
def test_the_largest_entries_are_those_of_a_stable_sort(length, count):
    rng = np.random.default_rng([length, count])
    for x in (rng.standard_normal(length), rng.integers(0, 4, length).astype(float), np.full(length, -np.inf)):
        x[rng.random(length) < 0.3] = -np.inf
        assert _largest(x, count) == sorted(range(length), key=lambda place: -x[place])[:count]

"""Generating token by token: where rows end, their probabilities, no_repeat, and that steps are taken lazily."""

import numpy as np
import pytest

from minitransformer.decoding import Sampling, generate_from, generate_tokens
from tests.decoding.scripted import (
    BOS,
    EOS,
    PAD,
    ScriptedState,
    naive_log_prob,
    naive_log_softmax,
    random_script,
)
from tests.decoding.test_sampling import naive_repeats
from tests.helpers import relative_error

pytestmark = (
    pytest.mark.host_only
)  # what a model says is on the host already; tests/decoding/test_on_models.py has models
V = 6


def bos(B):
    return np.full((B, 1), BOS)


def said_of(ids, eos=EOS):
    """Each row's tokens up to its eos."""
    return [row[: row.index(eos) + 1] if eos in row else row for row in ids.tolist()]


def naive_greedy(logits_of, source, prompt, count, no_repeat=0, eos=EOS):
    """One row by the definition: the most likely allowed token, until eos, or until no token is allowed."""
    said = list(prompt)
    for _ in range(count):
        log_p = naive_log_softmax([*map(float, logits_of(source, tuple(said)))])
        free = [i for i in range(len(log_p)) if not (no_repeat and naive_repeats(said, i, no_repeat))]
        if not free:
            break
        said.append(max(free, key=lambda i: (log_p[i], -i)))
        if said[-1] == eos:
            break
    return said[len(prompt) :]


def choose_at_random(seed=0):
    return Sampling(np.random.default_rng(seed), temperature=0.6, top_k=4, top_p=0.95)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("sampled", [False, True])
def test_rows_end_at_eos_and_are_padded_and_each_log_prob_is_the_models_own(seed, sampled):
    logits_of = random_script(seed, V)
    ids, log_probs = generate_from(
        ScriptedState(logits_of, range(5)), bos(5), 8, choose_at_random() if sampled else None
    )
    assert ids.shape == log_probs.shape
    answers = said_of(ids)
    assert len({len(row) for row in answers}) > 1, "the rows must end at different times"
    assert ids.shape[1] == max(map(len, answers))
    for source, said in enumerate(answers):
        assert (ids[source, len(said) :] == PAD).all()
        assert (log_probs[source, len(said) :] == 0).all()
        expected = np.array(naive_log_prob(logits_of, source, said))
        assert relative_error(log_probs[source, : len(said)], expected) <= 1e-13


@pytest.mark.parametrize("seed", range(3))
def test_without_a_choice_it_is_greedy(seed):
    logits_of = random_script(seed, V)
    answers = said_of(generate_from(ScriptedState(logits_of, range(6)), bos(6), 7).ids)
    assert answers == [naive_greedy(logits_of, source, [BOS], 7) for source in range(6)]


def test_another_eos_ends_rows_and_eos_none_ends_no_row():
    logits_of = random_script(1, V)
    for eos in (3, None):
        ids = generate_from(ScriptedState(logits_of, range(4)), bos(4), 12, choose_at_random(), eos=eos).ids
        assert (ids == EOS).any(), "the usual eos must mean nothing here"
        if eos is None:
            assert ids.shape == (4, 12)
        for row in said_of(ids, eos):
            assert eos not in row[:-1]
            assert row[-1] == eos or len(row) == 12


def test_prompt_is_read_whole_and_then_one_token_at_a_time():
    state, prompt = ScriptedState(random_script(2, V), range(3)), np.array([[1, 4, 3], [1, 5, 5], [1, 3, 4]])
    prompt.setflags(write=False)
    ids = generate_from(state, prompt, 4, eos=None).ids
    assert state.steps == 4
    read = np.array([said for _, said in state.rows])
    assert np.array_equal(read, np.concatenate([prompt, ids[:, :-1]], axis=1))


def test_tokens_come_as_soon_as_they_are_chosen():
    state = ScriptedState(random_script(4, V), range(3))
    tokens = generate_tokens(state, bos(3), 50, eos=None)
    assert state.steps == 0
    taken = []
    for step in range(1, 5):
        taken.append(next(tokens)[0])
        assert state.steps == step
    all_at_once = generate_from(ScriptedState(state.logits_of, range(3)), bos(3), 4, eos=None).ids
    assert np.array_equal(np.stack(taken, axis=1), all_at_once)


@pytest.mark.parametrize("no_repeat", [1, 2, 3])
@pytest.mark.parametrize("seed", range(3))
def test_no_repeat_equals_the_naive_loop_and_repeats_nothing(no_repeat, seed):
    rare_eos = random_script(seed, V, scale=1.0)

    def logits_of(source, said):
        return rare_eos(0, said[-1:]) - 9.0 * (np.arange(V) == EOS)  # one token back decides: it runs in circles

    prompts = np.array([[1, 3, 4, 3], [1, 5, 3, 4], [4, 4, 5, 1]])
    free = said_of(generate_from(ScriptedState(logits_of, range(3)), prompts, 14).ids)
    ids, log_probs = generate_from(ScriptedState(logits_of, range(3)), prompts, 14, no_repeat=no_repeat)
    changed = 0
    for source, prompt in enumerate(prompts.tolist()):
        expected = naive_greedy(logits_of, source, prompt, 14, no_repeat)
        changed += expected != free[source]
        assert ids[source].tolist() == expected + [PAD] * (ids.shape[1] - len(expected))
        text = prompt + expected
        new = range(len(prompt), len(text))
        assert not any(naive_repeats(text[:t], text[t], no_repeat) for t in new)
        exact = [naive_log_softmax(list(logits_of(0, tuple(text[:t]))))[text[t]] for t in new]
        assert np.abs(log_probs[source, : len(exact)] - exact).max() <= 1e-12, "not those after forbidding"
        assert (log_probs[source, len(exact) :] == 0).all()
    assert changed, "the model must want to repeat itself"


def test_a_row_without_an_allowed_token_ends_and_the_others_go_on():
    def logits_of(source, said):
        return [0.0, 0.0, -50.0, 1.0, 2.0]

    prompts = np.array([[0, 1, 2, 3], [4, 4, 1, 1]])  # the first has one token left, the second three
    for choose in (None, Sampling(np.random.default_rng(0))):
        ids, log_probs = generate_from(ScriptedState(logits_of, [0, 1]), prompts, 9, choose, eos=None, no_repeat=1)
        assert ids[0].tolist() == [4, PAD, PAD, PAD]
        assert sorted(ids[1, :3].tolist()) == [0, 2, 3]
        assert log_probs[0, 1:].tolist() == [0, 0, 0]
        assert ids[1, 3] == PAD
    assert generate_from(ScriptedState(logits_of, [0]), np.array([[3, 1, 4, 0, 2]]), 9, no_repeat=1).ids.tolist() == [
        [PAD]
    ]


def test_rows_are_drawn_independently():
    def same_for_all(source, said):
        return [0.0] * V

    ids = generate_from(
        ScriptedState(same_for_all, range(40)), bos(40), 3, Sampling(np.random.default_rng(0)), eos=None
    ).ids
    assert len({tuple(row) for row in ids.tolist()}) > 20


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_ids_have_the_dtype_of_the_prompt_and_log_probs_that_of_the_logits(dtype):
    for choose in (None, choose_at_random()):
        ids, log_probs = generate_from(ScriptedState(random_script(6, V), [0, 1]), bos(2).astype(dtype), 3, choose)
        assert ids.dtype == dtype
        assert log_probs.dtype == np.float64


@pytest.mark.parametrize(
    ("max_new_tokens", "no_repeat", "complaint"),
    [
        (0, 0, "max_new_tokens must be at least 1, got 0"),
        (-3, 0, "max_new_tokens must be at least 1, got -3"),
        (5, -1, "no_repeat must be at least 0, got -1"),
    ],
)
def test_values_out_of_range_are_refused(max_new_tokens, no_repeat, complaint):
    state = ScriptedState(random_script(0, V), [0])
    with pytest.raises(ValueError, match=f"^{complaint}$"):
        generate_from(state, bos(1), max_new_tokens, no_repeat=no_repeat)
    assert state.steps == 0

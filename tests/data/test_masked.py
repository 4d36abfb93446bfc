"""Masked tokens: the shares of the paper are masked, replaced or kept, and the targets are the original tokens."""

import math

import numpy as np
import pytest

from minitransformer.data import Corpus, MaskedTask, TextTask
from minitransformer.tokenizers import CharacterTokenizer
from minitransformer.vocabulary import PAD

LETTERS = "abcdefghijklmnopqrst"
LENGTH = 16
TEXTS = ["".join(np.random.default_rng(seed).choice(list(LETTERS), size)) for seed, size in ((1, 4000), (2, 1000))]
CORPUS = Corpus(*TEXTS)


def make_task(unknown=False):
    return MaskedTask(TextTask(CORPUS, CharacterTokenizer.train(LETTERS, unknown=unknown), LENGTH))


def draw(task, seed=0, size=4000):
    """Ids (size, LENGTH), and the batch that is made from them."""
    ids = task.text_task.batch(np.random.default_rng(seed), size).ids
    return ids, task.mask_tokens(np.random.default_rng(seed + 1), ids)


def within_five_sigma(count, n, share):
    return abs(count - n * share) <= 5 * math.sqrt(n * share * (1 - share))


def test_mask_id_comes_after_those_of_the_tokenizer():
    task = make_task()
    assert task.mask_id == task.text_task.tokenizer.vocab_size == 23
    assert task.vocab_size == 24


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_15_percent_are_predicted_and_of_these_80_masked_10_replaced_10_kept(seed):
    task = make_task()
    ids, batch = draw(task, seed)
    chosen = batch.targets != PAD
    masked = chosen & (batch.ids == task.mask_id)
    same = chosen & (batch.ids == ids)
    replaced = chosen & ~masked & ~same
    count = chosen.sum()
    assert within_five_sigma(count, ids.size, 0.15)
    assert within_five_sigma(masked.sum(), count, 0.8)
    # one of the 20 letters is the right one, so a random one leaves the token as it is once in 20 times
    assert within_five_sigma(replaced.sum(), count, 0.1 * 19 / 20)
    assert within_five_sigma(same.sum(), count, 0.1 + 0.1 / 20)


def test_targets_are_the_original_ids_and_nothing_else_changes():
    ids, batch = draw(make_task())
    chosen = batch.targets != PAD
    assert np.array_equal(batch.targets[chosen], ids[chosen])
    assert np.array_equal(batch.ids[~chosen], ids[~chosen])
    assert batch.inputs == (batch.ids,)


def test_choice_depends_neither_on_the_position_nor_on_the_token():
    ids, batch = draw(make_task())
    chosen = batch.targets != PAD
    for column in chosen.T:
        assert within_five_sigma(column.sum(), len(column), 0.15)
    for token in np.unique(ids):
        assert within_five_sigma(chosen[ids == token].sum(), (ids == token).sum(), 0.15)


@pytest.mark.parametrize("unknown", [False, True])
def test_replacements_are_all_tokens_of_the_text_equally_often(unknown):
    task = make_task(unknown)
    ids, batch = draw(task)
    changed = batch.ids[(batch.ids != ids) & (batch.ids != task.mask_id)]
    letters = task.text_task.tokenizer.encode(LETTERS)
    assert set(changed) == set(letters)
    for letter in letters:
        assert within_five_sigma((changed == letter).sum(), len(changed), 1 / len(letters))


def test_batches_come_from_the_training_text_and_differ():
    task, rng = make_task(), np.random.default_rng(3)
    first, second = task.batch(rng, 5), task.batch(rng, 5)
    assert first.ids.shape == first.targets.shape == (5, LENGTH)
    assert not np.array_equal(first.ids, second.ids)
    for batch in (first, second):
        for row, answers in zip(batch.ids, batch.targets, strict=True):
            text = np.where(answers != PAD, answers, row)
            assert task.text_task.tokenizer.decode(text) in CORPUS.train


def test_held_out_batches_mask_the_same_tokens_each_time_and_cover_the_text():
    task = make_task()
    first, second = list(task.held_out_batches(7)), list(task.held_out_batches(7))
    assert all(
        np.array_equal(a.ids, b.ids) and np.array_equal(a.targets, b.targets)
        for a, b in zip(first, second, strict=True)
    )
    other = list(task.held_out_batches(7, seed=1))
    assert not np.array_equal(first[0].targets, other[0].targets)
    rows = np.concatenate([np.where(batch.targets != PAD, batch.targets, batch.ids) for batch in first])
    text = task.text_task.tokenizer.decode(rows.reshape(-1))
    assert CORPUS.held_out.startswith(text)
    assert len(CORPUS.held_out) - len(text) <= LENGTH
    assert not np.array_equal(first[0].targets != PAD, first[1].targets != PAD)

"""Sentence pairs as batches: each pair once in an epoch, within the budget of tokens, with little padding."""

import itertools

import numpy as np
import pytest

from minitransformer.data import PairCorpus, TranslationTask
from minitransformer.data.translation import EncodedPairs, fitting_vocab_size
from minitransformer.vocabulary import BOS, EOS, PAD

BUDGET = 60


class Numbers:
    """A tokenizer of texts such as "7 12 5": each word is its own id."""

    def encode(self, text):
        return np.array([int(word) for word in text.split()], dtype=np.int64)


def ragged_pairs(count=300, seed=0):
    """Pairs of 1 to 12 tokens whose two sides are of similar, rarely of the same length; no two are equal."""
    rng = np.random.default_rng(seed)
    pairs = []
    for i in range(count):
        length = int(rng.integers(1, 11))
        lengths = length, max(1, length + int(rng.integers(-2, 3)))
        pairs.append(tuple(" ".join([str(10 + side * count + i)] * n) for side, n in enumerate(lengths)))
    return pairs


def encoded(pairs=None, max_len=20):
    return EncodedPairs(ragged_pairs() if pairs is None else pairs, Numbers(), max_len)


def make_task(train=None, max_len=20):
    return TranslationTask(
        PairCorpus(train or ragged_pairs(), [("3 4", "5"), ("6", "7")], [("8", "9 9")]), Numbers(), max_len
    )


def row_of(ids):
    """The tokens of a row without padding."""
    return " ".join(str(i) for i in ids if i != PAD)


def pairs_in(batch):
    """The pairs of a batch as text, without eos."""
    for side in (batch.source, batch.target_out):
        assert all(row_of(ids).endswith(str(EOS)) for ids in side)
    return [
        (row_of(source[source != EOS]), row_of(target[target != EOS]))
        for source, target in zip(batch.source, batch.target_out, strict=True)
    ]


def padding_of(batches):
    """The share of the positions that are padding."""
    arrays = [ids for batch in batches for ids in batch]
    return sum((ids == PAD).sum() for ids in arrays) / sum(ids.size for ids in arrays)


def test_batch_has_bos_before_the_target_and_eos_after_both_sides():
    batch = encoded([("13 14 15", "16 17"), ("18", "19 20 21 22"), ("23", "24")]).batch([0, 1])
    assert batch.source.tolist() == [[13, 14, 15, EOS], [18, EOS, PAD, PAD]]
    assert batch.target_in.tolist() == [[BOS, 16, 17, PAD, PAD], [BOS, 19, 20, 21, 22]]
    assert batch.target_out.tolist() == [[16, 17, EOS, PAD, PAD], [19, 20, 21, 22, EOS]]
    assert all(ids.dtype == np.int64 for ids in batch)
    assert batch.inputs == (batch.source, batch.target_in)
    assert batch.targets is batch.target_out


def test_a_batch_has_the_rows_that_were_asked_for_in_their_order():
    pairs = ragged_pairs(9)
    for rows in ([4], [8, 0, 3], np.array([5, 2])):
        assert pairs_in(encoded(pairs).batch(rows)) == [pairs[row] for row in rows]


@pytest.mark.parametrize("budget", [1, 60, 10**6])
def test_every_pair_comes_once_and_no_batch_exceeds_the_budget(budget):
    """Except for a pair that is longer than the budget: it is a batch of its own."""
    pairs, data = ragged_pairs(), encoded()
    for rng in (None, np.random.default_rng(2)):
        batches = [data.batch(rows) for rows in data.batches(budget, rng)]
        assert sorted(pair for batch in batches for pair in pairs_in(batch)) == sorted(pairs)
        for batch in batches:
            assert max(batch.source.size, batch.target_out.size) <= budget or len(batch.source) == 1


def test_batches_are_as_full_as_the_budget_allows():
    data = encoded()
    batches = data.batches(BUDGET)
    for rows, following in itertools.pairwise(batches):
        longest = data.lengths[[*rows, following[0]]].max()
        assert (len(rows) + 1) * longest > BUDGET, "one more pair did not fit"


def test_there_is_little_padding_also_in_a_random_order():
    data, rng = encoded(ragged_pairs(3000)), np.random.default_rng(3)
    assert padding_of([data.batch(rows) for rows in data.batches(400, rng)]) < 0.04


def epochs(seed, count=2, task=None, size=BUDGET):
    """The batches of some epochs that follow each other."""
    task, rng = task or make_task(), np.random.default_rng(seed)
    return [[[ids.tolist() for ids in batch] for batch in task.epoch(rng, size)] for _ in range(count)]


def test_the_same_generator_gives_the_same_epochs_and_each_epoch_is_another():
    first, second = epochs(5)
    assert epochs(5) == [first, second]
    assert first != second
    assert epochs(6)[0] != first


def test_the_order_of_the_batches_is_random():
    """Over 30 epochs, short batches and long ones come first, and in no epoch do the lengths only rise."""
    widths = [[len(batch[0][0]) for batch in epoch] for epoch in epochs(7, count=30)]
    first = [each[0] for each in widths]
    assert min(first) <= 4
    assert max(first) >= 8
    assert all(each != sorted(each) for each in widths)


def test_pairs_of_the_same_lengths_meet_others_in_each_epoch():
    pairs = [(f"{10 + i} 3", f"{500 + i}") for i in range(40)]
    companions = [
        {frozenset(row[0] for row in source) for source, *_ in epoch} for epoch in epochs(8, 2, make_task(pairs), 15)
    ]
    assert [sorted(map(len, each)) for each in companions] == [[5] * 8] * 2
    assert companions[0] != companions[1]


def test_batches_without_a_generator_are_always_the_same_and_go_from_short_to_long():
    data = encoded()
    first, again = ([rows.tolist() for rows in data.batches(BUDGET)] for _ in range(2))
    assert first == again
    targets = [data.lengths[row][1] for rows in first for row in rows]
    assert targets == sorted(targets)


def test_long_pairs_are_left_out_and_counted():
    pairs = [("3 4 5 6", "3"), ("3", "3 4 5 6"), ("3 4 5 6 7", "3"), ("3", "3 4 5 6 7"), ("3", "3")]
    data = encoded(pairs, max_len=5)  # with eos
    assert data.pairs == [pairs[0], pairs[1], pairs[4]]
    assert (len(data), data.left_out) == (3, 2)
    assert data.lengths.tolist() == [[5, 2], [2, 5], [2, 2]]
    assert sorted(np.concatenate(data.batches(6)).tolist()) == [0, 1, 2]


def test_no_pairs_at_all_are_no_error_until_a_task_needs_them():
    data = encoded([])
    assert (len(data), data.left_out, data.lengths.shape) == (0, 0, (0, 2))


NUMBERS = [(f"Das sind {i} Ziegen, {i} Kühe.", f"These are {i} goats, {i} cows.") for i in range(400, 900)]


def test_every_digit_of_ones_own_pairs_is_a_token_and_words_are_merged():
    tokenizer = TranslationTask.from_pairs(NUMBERS, vocab_size=400).tokenizer
    written = [tokenizer.tokens[id] for id in tokenizer.encode("These are 422 goats, x٤٥")]
    assert written[:8] == ["These", " are", " ", "4", "2", "2", " goats", ","]
    assert not any(any(map(str.isdigit, token)) for token in tokenizer.tokens if len(token) > 1 and "\\" not in token)
    assert tokenizer.decode(tokenizer.encode("These are 422 goats, x٤٥")) == "These are 422 goats, x٤٥"


def test_a_longer_text_has_more_tokens_but_not_too_many():
    """Without merges there are 3 special tokens and 256 bytes. The German and English of the Bible are 8 million."""
    sizes = [fitting_vocab_size(characters) for characters in (0, 1_999, 2_000, 250_000, 8_093_183)]
    assert sizes == [259, 259, 260, 384, 4000]
    assert TranslationTask.from_pairs(NUMBERS).tokenizer.vocab_size == 259 + 29_946 // 2000

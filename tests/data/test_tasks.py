"""The toy tasks: right answers, padding only at the end, and held-out sequences that training never sees."""

import functools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minitransformer.data import get_task
from minitransformer.data.tasks import Batch, Recall, is_held_out, make_batch, pad_rows
from minitransformer.vocabulary import BOS, EOS, PAD

SOLUTIONS = {
    "copy": lambda text: text,
    "reverse": lambda text: text[::-1],
    "sort": lambda text: "".join(sorted(text)),
    "addition": lambda text: str(sum(int(number) for number in text.split("+"))),
    "recall": lambda text: dict(zip(text[::2], text[1::2], strict=False))[text[-1]],
}
LETTERS = st.text("abcdefghijklmnopqrstuvwxyz", min_size=1, max_size=12)
SUMS = st.builds("{}+{}".format, st.integers(0, 9999), st.integers(0, 9999))
PAIRS = st.dictionaries(st.sampled_from("abcdefghijklmnopqrstuvwxyz"), st.sampled_from("0123456789"), min_size=1)
ASKED = PAIRS.flatmap(
    lambda pairs: st.sampled_from(list(pairs)).map(lambda key: "".join(map("".join, pairs.items())) + key)
)
SOURCES = {"copy": LETTERS, "reverse": LETTERS, "sort": LETTERS, "addition": SUMS, "recall": ASKED}
SIDE_SIZE, SOLVED = 2000, 300  # pairs that are drawn, and those of them that are solved once more

each_task = pytest.mark.parametrize("name", list(SOLUTIONS))
untimed = settings(deadline=None)  # a slow machine is not a failure
each_side = pytest.mark.parametrize("held_out", [False, True])


@functools.cache
def _side(name, held_out):
    """Many pairs of one side, drawn once for all tests, as training and testing draw them."""
    task, rng = get_task(name), np.random.default_rng(20 + held_out)
    return task.held_out_batch(rng, SIDE_SIZE) if held_out else task.batch(rng, SIDE_SIZE)


@functools.cache
def _sources(name, held_out):
    """The sources of those pairs as texts. To decode so many one by one takes long."""
    words = dict(enumerate(get_task(name).vocabulary)) | dict.fromkeys((PAD, EOS), "")
    return ["".join(words[i] for i in row) for row in _side(name, held_out).source.tolist()]


@functools.cache
def _decoded(name, held_out):
    """The sources of the first of them, as the task decodes them."""
    return [get_task(name).decode(source) for source in _side(name, held_out).source[:SOLVED]]


def _encode_all(task, texts, padding=0):
    """The texts as padded rows, with `padding` more columns than the longest one needs."""
    return pad_rows([task.encode(text) for text in texts], max(map(len, texts)) + padding)


def _lengths(rows):
    """The number of ids before the padding of each row, eos included. Only padding may follow."""
    lengths = []
    for row in rows.tolist():
        length = row.index(PAD) if PAD in row else len(row)
        assert set(row[length:]) <= {PAD}, f"padding inside {row}"
        lengths.append(length)
    return lengths


@each_task
@untimed
@given(data=st.data())
def test_any_sources_are_solved_at_any_padding(name, data):
    task = get_task(name)
    texts = data.draw(st.lists(SOURCES[name], min_size=1, max_size=5))
    answers = task.solve(_encode_all(task, texts, padding=data.draw(st.integers(0, 3))))
    _lengths(answers)  # padding at the end only
    assert [task.decode(answer) for answer in answers] == [SOLUTIONS[name](text) for text in texts]


def test_addition_carries_through_all_digits():
    task = get_task("addition")
    texts = ["9999+1", "9999+9999", "0+0", "1+999", "5+5"]
    answers = [task.decode(answer) for answer in task.solve(_encode_all(task, texts))]
    assert answers == ["10000", "19998", "0", "1000", "10"]


@each_task
@each_side
def test_batch_is_laid_out_for_teacher_forcing(name, held_out):
    task = get_task(name)
    rows = (ids[:SOLVED] for ids in _side(name, held_out))
    for text, source, target_in, target_out in zip(_decoded(name, held_out), *rows, strict=True):
        question, answer = task.encode(text).tolist(), task.encode(SOLUTIONS[name](text)).tolist()
        padding = [PAD] * (len(target_out) - len(answer) - 1)
        assert source.tolist() == [*question, EOS, *[PAD] * (len(source) - len(question) - 1)]
        assert target_in.tolist() == [BOS, *answer, *padding]
        assert target_out.tolist() == [*answer, EOS, *padding]


def test_batch_of_short_sources_is_cut_to_their_width():
    task = get_task("sort")
    source = _encode_all(task, ["ba", "c"], padding=9)
    batch = make_batch(source, task.solve(source))
    a, b, c = task.encode("abc").tolist()
    assert batch.source.tolist() == [[b, a, EOS], [c, EOS, PAD]]
    assert batch.target_in.tolist() == [[BOS, a, b], [BOS, c, PAD]]
    assert batch.target_out.tolist() == [[a, b, EOS], [c, EOS, PAD]]


@pytest.mark.parametrize("name", ["copy", "reverse", "sort"])
def test_lengths_cover_the_whole_range_and_held_out_ones_begin_at_six(name):
    with_eos = 1
    assert {length - with_eos for length in _lengths(_side(name, False).source)} == set(range(1, 13))
    assert {length - with_eos for length in _lengths(_side(name, True).source)} == set(range(6, 13))


def test_addition_has_all_numbers_of_digits_and_held_out_sums_have_at_least_six_symbols():
    digits = [set(), set()]
    for held_out in (False, True):
        for text in _sources("addition", held_out):
            first, second = text.split("+")
            assert str(int(first)) == first, "no leading zeros"
            assert str(int(second)) == second, "no leading zeros"
            digits[held_out].add((len(first), len(second)))
    all_pairs = {(a, b) for a in range(1, 5) for b in range(1, 5)}
    assert digits[False] == all_pairs
    assert digits[True] == {(a, b) for a, b in all_pairs if a + 1 + b >= 6}


def test_short_numbers_are_as_frequent_as_long_ones():
    """Drawn evenly from 0 to 9999, nine numbers in ten would have four digits."""
    task = get_task("addition")
    sums = [task.decode(row).split("+") for row in task.draw(np.random.default_rng(4), 4000, 1)]
    for numbers in zip(*sums, strict=True):
        for digits in range(1, 5):
            share = sum(len(number) == digits for number in numbers) / len(numbers)
            assert abs(share - 0.25) < 0.04  # more than five standard deviations
    assert {a for a, _ in sums if len(a) == 1} == set("0123456789")


def test_recall_has_all_numbers_of_pairs_of_different_letters_and_asks_for_each_place():
    pairs, places = [set(), set()], set()
    for held_out in (False, True):
        for text in _sources("recall", held_out):
            assert len(set(text[:-1:2])) == len(text) // 2, "a key occurs once"
            pairs[held_out].add(len(text) // 2)
            places.add(text.index(text[-1]) // 2)
    assert pairs == [set(range(1, 17)), set(range(3, 17))]
    assert places == set(range(16))


@pytest.mark.parametrize("pairs", [1, 2, 26])
def test_recall_of_any_length_has_sources_up_to_it(pairs):
    batch = Recall(pairs).held_out_batch(np.random.default_rng(0), 300)
    assert max(_lengths(batch.source)) == pairs + 1 + 1
    assert is_held_out(batch.source).all()


@each_task
def test_min_len_is_kept(name):
    batch = get_task(name).batch(np.random.default_rng(0), 500, min_len=8)
    assert min(_lengths(batch.source)) == 8 + 1


@each_task
def test_all_symbols_occur_in_training_and_held_out_batches(name):
    task = get_task(name)
    all_ids = set(range(EOS + 1, len(task.vocabulary)))
    for held_out in (False, True):
        source, _, target = _side(name, held_out)
        assert {*np.unique(source), *np.unique(target)} - {PAD, EOS} == all_ids


@each_task
def test_training_and_held_out_sides_are_disjoint(name):
    train, test = (_side(name, held_out).source for held_out in (False, True))
    texts = [set(_sources(name, held_out)) for held_out in (False, True)]
    assert not texts[0] & texts[1]
    assert not is_held_out(train).any()
    assert is_held_out(test).all()
    assert min(len(side) for side in texts) > SIDE_SIZE / 4, "too few different texts for a fair test"


def test_padding_and_eos_after_a_source_never_change_its_side():
    ids = np.array([[a, b] for a in range(3, 29) for b in range(3, 29)])
    expected = is_held_out(ids)
    assert 0 < expected.sum() < len(ids)
    for ending in ([PAD], [PAD, PAD, PAD], [EOS], [EOS, PAD]):
        longer = np.concatenate([ids, np.tile(ending, (len(ids), 1))], axis=1)
        assert np.array_equal(is_held_out(longer), expected)


def test_held_out_sources_are_the_same_in_every_version():
    """The split is frozen: with another one, an old checkpoint would have been trained on sequences of the new test."""
    letters, addition = get_task("copy"), get_task("addition")
    assert _held_out_among(letters, "abcdefghijklmnopqrstuvwxyz") == ["a", "d", "r"]
    assert _held_out_among(letters, ["attention", "transformer", "encoder", "decoder"]) == ["attention"]
    sums = [f"{a}+{b}" for a in (3, 7, 10) for b in range(12)]
    assert _held_out_among(addition, sums) == ["3+0", "3+3", "3+8", "7+8", "10+11"]


def _held_out_among(task, texts):
    return [text for text in texts if is_held_out(task.encode(text)[None])[0]]


@each_task
@untimed
@given(data=st.data())
def test_decode_undoes_encode(name, data):
    task, text = get_task(name), data.draw(SOURCES[name])
    ids = task.encode(text)
    assert ids.min() > EOS
    assert task.decode(ids) == text
    assert task.decode([BOS, *ids, EOS, *ids, PAD]) == text, "bos, and everything from eos on, is not text"


def test_vocabulary_begins_with_the_special_tokens():
    assert get_task("addition").vocabulary == ("<pad>", "<bos>", "<eos>", *"0123456789+")
    assert (PAD, BOS, EOS) == (0, 1, 2)
    assert get_task("addition").encode("07+").tolist() == [3, 10, 13]


@each_task
@each_side
def test_same_seed_draws_the_same_batch_and_another_seed_a_different_one(name, held_out):
    task = get_task(name)
    first, again, other = (task.batch(np.random.default_rng(seed), 17, held_out) for seed in (5, 5, 6))
    assert isinstance(first, Batch)
    for got, expected in zip(again, first, strict=True):
        assert len(got) == 17
        np.testing.assert_array_equal(got, expected)
    assert first.source.tolist() != other.source.tolist()

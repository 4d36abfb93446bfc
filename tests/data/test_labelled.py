"""Labelled sentences: what is held out, what is left out, and what the batches look like."""

from collections import Counter

import numpy as np
import pytest

from minitransformer.config import ModelConfig
from minitransformer.data.labelled import PACKAGES, LabelledTask, load_labelled
from minitransformer.tokenizers import CharacterTokenizer
from minitransformer.vocabulary import BOS, PAD

LINES = [
    *(f"{'long ' * (i % 4)}number {i}\teven" for i in range(0, 22, 2)),
    *(f"number {i}\todd" for i in range(1, 9, 2)),
]


def write(path, lines):
    path.write_text("\n".join(lines) + "\n", encoding="utf8")
    return path


@pytest.fixture
def file(tmp_path):
    return write(tmp_path / "numbers.tsv", LINES)


def test_a_fifth_of_each_label_rounded_up_is_held_out_whatever_the_order(file):
    train, held_out = load_labelled(file)
    assert {"\t".join(pair) for pair in train + held_out} == set(LINES)
    assert Counter(label for _, label in held_out) == {"even": 3, "odd": 1}
    assert len(train) + len(held_out) == len(LINES)
    assert load_labelled(write(file, LINES[::-1])) == (train, held_out)


def test_a_sentence_with_two_labels_is_left_out_and_one_that_is_repeated_counts_once(file):
    parts = load_labelled(file)
    assert load_labelled(write(file, [*LINES, "both\teven", LINES[0], "both\todd"])) == parts


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (["no label"], "line 1: a line must be a sentence, a tab and its label, such as: "),
        ([*LINES, "two\ttabs\tare two many"], f"line {len(LINES) + 1}: a line must be"),
        (LINES[:11], r"two labels are needed, and two sentences of each, got 'even' \(11\); a line must be"),
        ([*LINES, "label\tsentence"], r"got 'even' \(11\), 'odd' \(4\), 'sentence' \(1\); a line must be"),
        (["\t".join(line.split("\t")[::-1]) for line in LINES], "got none; a line must be"),
    ],
)
def test_other_forms_are_refused_and_the_form_is_shown(lines, said, tmp_path):
    with pytest.raises(ValueError, match=rf"numbers.tsv.*{said}"):
        load_labelled(write(tmp_path / "numbers.tsv", lines))


@pytest.mark.exhaustive
def test_docstrings_are_sentences_of_every_package():
    train, held_out = load_labelled()
    assert {label for _, label in train} == {label for _, label in held_out} == set(PACKAGES)
    assert len(train) + len(held_out) > 3000
    assert min(len(sentence.split()) for sentence, _ in train) == 5


def test_batches_have_bos_first_and_labels_counted_from_1(file):
    train, held_out = load_labelled(file)
    tokenizer = CharacterTokenizer.train("".join(LINES))
    task = LabelledTask(train, held_out, tokenizer, 14)
    assert task.labels == ["even", "odd"]
    batch = task.batch(np.random.default_rng(0), 50)
    assert batch.ids.shape == (50, 14)
    assert (batch.ids[:, 0] == BOS).all()
    of_sentence = dict(train)
    for ids, target in zip(batch.ids, batch.targets, strict=True):
        text = tokenizer.decode(ids[(ids != PAD) & (ids != BOS)])
        (label,) = {label for sentence, label in of_sentence.items() if sentence[:13] == text}
        assert task.labels[target - 1] == label
    other = LabelledTask(train, held_out, tokenizer, 14, ModelConfig(padding=9, start=None))
    np.testing.assert_array_equal(other.train.ids[:, :13][task.train.ids[:, 1:] == PAD], 9)
    np.testing.assert_array_equal(other.train.ids[:, 0], task.train.ids[:, 1])
    parts = list(task.held_out_batches(3))
    assert [len(part.ids) for part in parts] == [3, 1]
    np.testing.assert_array_equal(
        np.concatenate([part.targets for part in parts]), [1 + (l == "odd") for _, l in held_out]
    )

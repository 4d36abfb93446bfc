"""Handwritten digits: what is held out, and how the training images are moved."""

import sys
from types import SimpleNamespace

import numpy as np
import pytest

from minitransformer.data.labelled import DigitsTask

SIDE = 8


def drawn_digits(return_X_y):
    """As many images as scikit-learn has, of random pixels; importing it takes two seconds."""
    rng = np.random.default_rng(1)
    return rng.integers(0, 17, (1797, SIDE * SIDE)).astype(float), rng.integers(0, 10, 1797)


@pytest.fixture
def task(monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn.datasets", SimpleNamespace(load_digits=drawn_digits))
    return DigitsTask(3)


def test_all_images_are_there_once_with_their_digits_and_450_are_held_out(task):
    images, digits = drawn_digits(return_X_y=True)
    pixels, targets = (np.concatenate(pair) for pair in zip(task.train, task.held_out, strict=True))
    assert len(task.held_out.ids) == 450
    theirs = sorted((*row, digit) for row, digit in zip(images.astype(int).tolist(), digits, strict=True))
    assert sorted((*row, target - 1) for row, target in zip((pixels - 1).tolist(), targets, strict=True)) == theirs


def test_the_seed_alone_draws_those_that_are_held_out(task):
    again, other = DigitsTask(3), DigitsTask(4)
    np.testing.assert_array_equal(again.held_out.ids, task.held_out.ids)
    assert (other.held_out.ids != task.held_out.ids).any()
    assert again.sha256 == task.sha256 != other.sha256


def test_training_images_are_moved_by_at_most_a_pixel_each_way_and_white_comes_in(task):
    known = {tuple(row): target for row, target in zip(task.train.ids.tolist(), task.train.targets, strict=True)}
    moves = {}
    for row, target in known.items():
        image = np.pad(np.array(row).reshape(SIDE, SIDE), 1, constant_values=1)
        for up in range(3):
            for left in range(3):
                moves.setdefault(tuple(image[up : up + SIDE, left : left + SIDE].ravel().tolist()), []).append(
                    ((up, left), target)
                )
    batch = task.batch(np.random.default_rng(0), 200)
    assert batch.ids.shape == (200, SIDE * SIDE)
    found = [moves[tuple(row)] for row in batch.ids.tolist()]
    for options, target in zip(found, batch.targets, strict=True):
        assert target in {digit for _, digit in options}
    assert {move for options in found for move, _ in options} == {(up, left) for up in range(3) for left in range(3)}


def test_without_scikit_learn_the_command_that_installs_it_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn.datasets", None)
    with pytest.raises(ValueError, match=r"scikit-learn, which is not installed: pip install -e '\.\[digits\]'"):
        DigitsTask(0)

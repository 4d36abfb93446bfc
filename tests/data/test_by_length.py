"""A batch cut by length: the same sequences with less padding, in parts of about the same length."""

from typing import NamedTuple

import numpy as np
import pytest

from minitransformer.data import TextBatch, get_task, task_names
from minitransformer.data.by_length import LEAST_SAVED, cut_by_length, take
from minitransformer.data.prompted import PromptedTask
from minitransformer.data.tasks import Batch
from minitransformer.vocabulary import PAD


def _rows(batch):
    """The sequences of a batch without their padding, in an order that does not depend on that of the batch."""
    return sorted(tuple(tuple(ids[ids != PAD]) for ids in arrays) for arrays in zip(*batch, strict=True))


def _padding(batches):
    """The share of the positions that are padding."""
    inputs = [ids for batch in batches for ids in batch.inputs]
    return 1 - sum((ids != PAD).sum() for ids in inputs) / sum(ids.size for ids in inputs)


def _ragged(*lengths):
    """Sequences of these lengths as a batch of a language model."""
    ids = np.where(np.arange(max(lengths)) < np.array(lengths)[:, None], 7, PAD)
    return TextBatch(ids, ids)


@pytest.mark.parametrize("prompt", [False, True])
@pytest.mark.parametrize("name", task_names())
def test_parts_hold_each_pair_of_the_batch_once(name, prompt):
    task = PromptedTask(get_task(name)) if prompt else get_task(name)
    batch = task.batch(np.random.default_rng(1), 200)
    parts = cut_by_length(batch)
    assert len(parts) > 1
    assert sorted(row for part in parts for row in _rows(part)) == _rows(batch)


@pytest.mark.parametrize("name", ["copy", "reverse", "sort"])
def test_padding_falls_from_two_fifths_of_a_training_batch_to_a_quarter(name):
    rng = np.random.default_rng(2)
    batches = [get_task(name).batch(rng, 64) for _ in range(20)]
    assert 0.40 < _padding(batches) < 0.44
    assert _padding([part for batch in batches for part in cut_by_length(batch)]) < 0.28


def test_parts_go_from_the_shortest_sequences_to_the_longest():
    parts = cut_by_length(_ragged(*range(1, 101)))
    lengths = [(part.ids != PAD).sum(axis=1) for part in parts]
    assert len(parts) > 4
    assert np.concatenate(lengths).tolist() == list(range(1, 101))
    assert [part.ids.shape[1] for part in parts] == [longest[-1] for longest in lengths]


def test_a_batch_is_cut_if_that_saves_more_than_a_part_costs():
    saved = LEAST_SAVED // 4  # positions in each of four short sequences
    batch = _ragged(*[5 + saved] * 4, *[5] * 4)
    assert cut_by_length(batch) == [batch]
    batch = _ragged(*[6 + saved] * 4, *[5] * 4)
    assert [part.ids.shape for part in cut_by_length(batch)] == [(4, 5), (4, 6 + saved)]


def test_sequences_of_one_length_and_a_single_one_are_not_cut():
    for batch in (_ragged(*[900] * 9), _ragged(900)):
        assert cut_by_length(batch) == [batch]


def test_columns_that_are_all_padding_are_left_out_of_arrays_of_one_width_together():
    batch = Batch(
        source=np.array([[7, 8, 9, 2], [5, 2, 0, 0], [6, 2, 0, 0]]),
        target_in=np.array([[1, 7, 8], [1, 0, 0], [1, 5, 0]]),
        target_out=np.array([[7, 8, 2], [2, 0, 0], [5, 2, 0]]),
    )
    taken = take(batch, np.array([2, 1]))
    assert isinstance(taken, Batch)
    assert [ids.tolist() for ids in taken] == [[[6, 2], [5, 2]], [[1, 5], [1, 0]], [[5, 2], [2, 0]]]
    text = take(TextBatch(np.array([[3, 4, 5, 0]]), np.array([[0, 4, 0, 0]])), np.array([0]))
    assert [ids.tolist() for ids in text] == [[[3, 4, 5]], [[0, 4, 0]]]


def test_one_target_for_each_sequence_goes_with_it():
    class Labelled(NamedTuple):
        ids: np.ndarray
        targets: np.ndarray

        @property
        def inputs(self):
            return (self.ids,)

    ids = _ragged(*[1, 99] * 4).ids
    short, long = cut_by_length(Labelled(ids, np.arange(8)))
    assert short.targets.tolist() == [0, 2, 4, 6]
    assert long.targets.tolist() == [1, 3, 5, 7]

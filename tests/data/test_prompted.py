"""A pair as one sequence: "source eos answer eos", in which only the answer is predicted."""

import numpy as np
import pytest

from minitransformer.data import get_task, task_names
from minitransformer.data.prompted import PromptedTask, prompted
from minitransformer.data.tasks import make_batch
from minitransformer.vocabulary import EOS, PAD

SOURCE = np.array([[5, 3, 4], [6, 0, 0], [7, 8, 0]])
ANSWER = np.array([[4, 3, 5, 9], [6, 0, 0, 0], [8, 0, 0, 0]])


def test_source_and_answer_are_one_sequence_and_targets_are_the_answer_shifted_by_one():
    batch = prompted(make_batch(SOURCE, ANSWER))
    assert batch.inputs[0].tolist() == [
        [5, 3, 4, EOS, 4, 3, 5, 9],
        [6, EOS, 6, 0, 0, 0, 0, 0],
        [7, 8, EOS, 8, 0, 0, 0, 0],
    ]
    assert batch.targets.tolist() == [
        [0, 0, 0, 4, 3, 5, 9, EOS],
        [0, 6, EOS, 0, 0, 0, 0, 0],
        [0, 0, 8, EOS, 0, 0, 0, 0],
    ]


def test_target_of_an_empty_answer_is_eos():
    batch = prompted(make_batch(np.array([[5, 3], [4, 0]]), np.array([[0, 0], [7, 0]])))
    assert batch.ids.tolist() == [[5, 3, EOS], [4, EOS, 7]]
    assert batch.targets.tolist() == [[0, 0, EOS], [0, 7, EOS]]


@pytest.mark.parametrize("name", task_names())
def test_sequences_of_every_toy_task_hold_its_answers(name):
    task = get_task(name)
    batch = PromptedTask(task).batch(np.random.default_rng(0), 40)
    assert batch.ids.shape == batch.targets.shape
    assert (batch.ids[:, -1] != PAD).any(), "no column is all padding"
    for ids, targets in zip(batch.ids, batch.targets, strict=True):
        end = int(np.argmax(ids == EOS))
        source, length = ids[:end], int((ids != PAD).sum())
        (answer,) = task.solve(source[None])
        assert np.array_equal(targets[end:length], [*answer[answer != PAD], EOS])
        assert not targets[:end].any()
        assert not targets[length:].any()
        assert np.array_equal(ids[end + 1 : length], targets[end : length - 1])


def test_pairs_are_those_of_the_task_and_the_same_for_the_same_seed():
    task = get_task("sort")
    batch = PromptedTask(task).batch(np.random.default_rng(4), 20)
    pairs = task.batch(np.random.default_rng(4), 20)
    assert np.array_equal(batch.ids, prompted(pairs).ids)
    assert (batch.targets != PAD).sum() == (pairs.target_out != PAD).sum()

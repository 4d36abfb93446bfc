"""A batch in micro batches, one after another, gives the loss and the gradient of the whole, in less memory."""

import tracemalloc
from unittest import mock

import numpy as np
import pytest

from minitransformer.data import Batch
from minitransformer.models import Transformer, TransformerConfig
from minitransformer.system.generators import make_generator
from minitransformer.system.process import ThreadTeam
from minitransformer.training import (
    CrossEntropyLoss,
    DataParallel,
    GradientAccumulation,
    TrainingSettings,
    gradients_of,
)
from minitransformer.training.parallel import threads as parallel
from minitransformer.training.parallel.micro_batches import ByLength
from tests.helpers import Trainer, host, ragged, randomize, relative_error

V, B, S, T = 19, 7, 6, 5
BOUND = 1e-12
SIZES = {"d_model": 12, "num_heads": 3, "d_ff": 20, "num_layers": 2, "max_len": 16}

even_small_parts = mock.patch.object(parallel, "MIN_NUMBERS", 1)


def build(dropout=0.0, kind=Transformer, **changes):
    return randomize(
        kind(TransformerConfig(vocab_size=V, dropout=dropout, **SIZES, **changes), dtype="float64"), 0, 0.3
    )


def ragged_batch(count=B):
    return ragged(V, (count, S), (count, T))


def workers_of(model, steps, threads=1, seed=0):
    workers = DataParallel(model, CrossEntropyLoss(0.1), threads, seed)
    return GradientAccumulation(ByLength(workers, workers.loss_fn), workers.loss_fn, steps)


def computed(batch, steps, threads=1, **changes):
    """-> the loss, the accuracy, and the gradients of all weights that have one beyond rounding noise."""
    model = build(**changes)
    loss, accuracy = workers_of(model, steps, threads)(batch, measure=True)
    named = {name: parameter for name, parameter in model.named_parameters() if not name.endswith("kv.b")}
    gradients = {name: host(parameter.grad) for name, parameter in named.items()}
    return float(loss), float(accuracy), gradients


def assert_same(found, expected):
    assert abs(found[0] - expected[0]) < BOUND * expected[0]
    assert abs(found[1] - expected[1]) < BOUND
    for name, gradient in expected[2].items():
        assert relative_error(found[2][name], gradient) < BOUND, name


@pytest.mark.host_only
@even_small_parts
def test_each_micro_batch_is_cut_once_more_and_no_replica_is_used_by_two_threads(monkeypatch):
    calls, original = [], ThreadTeam.map
    monkeypatch.setattr(ThreadTeam, "map", lambda self, f, *jobs: calls.append((f, *jobs)) or original(self, f, *jobs))
    workers_of(build(), 3, threads=4)(ragged_batch())  # 7 sequences: three, two and two
    calls = [call for call in calls if call[0].__name__ == "compute"]
    assert [len(replicas) for _, replicas, *_ in calls] == [3, 2, 2]
    for _, gradients, parts, _ in calls:
        assert len({id(each.model) for each in gradients}) == len({id(each.rng) for each in gradients}) == len(parts)
        assert [len(part.targets) for part in parts] == [1] * len(parts)


@pytest.mark.host_only
def test_dropout_masks_of_all_micro_batches_come_from_one_stream():
    model, batch = build(dropout=0.4), Batch(*(np.repeat(ids[-1:], 2, axis=0) for ids in ragged_batch()))
    loss, _ = workers_of(model, 2, seed=4)(batch)
    rng, half = make_generator([4]), Batch(*(ids[:1] for ids in batch))
    first, second = (float(gradients_of(build(dropout=0.4), CrossEntropyLoss(0.1), rng)(half).loss) for _ in range(2))
    assert first != second, "one and the same sequence, with other masks"
    assert abs(float(loss) - (first + second) / 2) < BOUND * first


@pytest.mark.host_only
def test_four_micro_batches_need_a_quarter_of_the_memory():
    config = TransformerConfig(vocab_size=50, d_model=32, num_heads=4, d_ff=64, num_layers=3, max_len=64)
    rng, peaks = np.random.default_rng(0), []
    batch = Batch(*(rng.integers(3, 50, (16, 40)) for _ in range(3)))
    for steps in (1, 4):
        trainer = Trainer(Transformer(config), threads=1, grad_accumulation_steps=steps)
        trainer.step(batch, 1e-3)
        tracemalloc.start()
        trainer.step(batch, 1e-3)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert 0.24 < peaks[1] / peaks[0] < 0.28


@pytest.mark.parametrize("steps", [0, -1, 6])
def test_settings_refuse_impossible_numbers_of_micro_batches(steps):
    with pytest.raises(ValueError, match=r"grad_accumulation_steps must be (at least 1|from 1 to batch_size = 5)"):
        TrainingSettings(batch_size=5, grad_accumulation_steps=steps)


@pytest.mark.parametrize(("steps", "size"), [(1, 7), (2, 4), (3, 3), (7, 1)])
def test_micro_batch_size_is_that_of_the_largest(steps, size):
    assert TrainingSettings(batch_size=B, grad_accumulation_steps=steps).micro_batch_size == size


def test_a_batch_with_too_few_sequences_is_computed_one_by_one():
    assert_same(computed(ragged_batch(2), 3), computed(ragged_batch(2), 2))


def test_nothing_is_measured_by_default():
    for steps in (1, 2):
        assert workers_of(build(), steps)(ragged_batch()).accuracy is None

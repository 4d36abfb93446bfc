"""Threads that share a batch find the loss and the gradient that one alone finds, whatever the parts look like."""

from unittest import mock

import numpy as np
import pytest

from minitransformer.data import Batch
from minitransformer.models import Transformer, TransformerConfig
from minitransformer.system.generators import make_generator
from minitransformer.system.process import THREAD_VARIABLES, ThreadTeam
from minitransformer.training import Adam, CrossEntropyLoss, DataParallel, Muon
from minitransformer.training.parallel import threads as parallel
from minitransformer.training.parallel.parts import shares_of
from minitransformer.training.step import Measured
from tests.helpers import Trainer, ragged, randomize, relative_error

pytestmark = pytest.mark.host_only  # a GPU is fed by one thread: see DataParallel

V, B, S, T = 19, 7, 6, 5
BOUND = 1e-13


# as a decorator, which the museum of wrong gradients applies as well
even_small_parts = mock.patch.object(parallel, "MIN_NUMBERS", 1)


def build(dropout=0.0):
    sizes = {"d_model": 12, "num_heads": 3, "d_ff": 20, "num_layers": 2, "max_len": 8}
    config = TransformerConfig(vocab_size=V, dropout=dropout, **sizes)
    return randomize(Transformer(config, dtype="float64"), scale=0.3)


def ragged_batch(count=B):
    return ragged(V, (count, S), (count, T))


def loss_and_gradients(threads, batch):
    model = build()
    loss, accuracy = DataParallel(model, CrossEntropyLoss(0.1), threads)(batch, measure=True)
    return float(loss), float(accuracy), {name: parameter.grad for name, parameter in model.named_parameters()}


@even_small_parts
@pytest.mark.parametrize("make_optimizer", [lambda model: Adam(model.parameters()), Muon], ids=["Adam", "Muon"])
def test_replicas_follow_the_weights_that_an_optimizer_made_later_has_moved(make_optimizer):
    losses = {}
    for threads in (1, 2):
        model = build()
        workers = DataParallel(model, CrossEntropyLoss(0.1), threads)
        optimizer = make_optimizer(model)
        for _ in range(3):
            optimizer.zero_grad()
            losses.setdefault(threads, []).append(float(workers(ragged_batch()).loss))
            optimizer.step()
    assert relative_error(losses[2], losses[1]) < 1e-9
    assert losses[1][-1] < losses[1][0]


@even_small_parts
def test_no_two_threads_drop_the_same_units():
    batch = Batch(*(np.repeat(ids[-1:], 2, axis=0) for ids in ragged_batch()))  # two threads, one and the same sequence
    model = build(dropout=0.5)
    workers = DataParallel(model, CrossEntropyLoss(), 2)
    drawn = [rng.integers(0, 2**32, 8).tolist() for rng in workers.rngs]
    assert drawn[0] != drawn[1]
    loss, _ = workers(batch)
    assert np.isfinite(loss)


def test_a_small_batch_is_left_to_one_thread():
    workers, parts = DataParallel(build(), CrossEntropyLoss(), 2), []
    workers.gradients = [lambda part, *more: Measured(parts.append(part))] * 2
    workers(ragged_batch())
    assert [len(part.targets) for part in parts] == [B]


def test_the_source_counts_as_work_for_threads_too(monkeypatch):
    batch = ragged_batch()
    tokens = batch.source.shape[1] + batch.target_in.shape[1]
    monkeypatch.setattr(parallel, "MIN_NUMBERS", B * tokens * build().config.d_model // 2)
    parts = []
    workers = DataParallel(build(), CrossEntropyLoss(), 2)
    workers.gradients = [lambda part, *more: Measured(parts.append(part) or 0.0)] * 2
    workers(batch)
    assert len(parts) == 2


@pytest.mark.parametrize(
    ("threads", "B", "T", "C", "expected"),
    [
        (4, 64, 16, 256, 4),
        (8, 64, 16, 256, 4),  # 2**18 numbers are enough for four
        (4, 2, 1024, 256, 2),  # no more threads than sequences
        (4, 64, 16, 32, 1),
        (1, 64, 16, 256, 1),
    ],
)
def test_as_many_threads_work_as_pay(threads, B, T, C, expected):
    assert parallel.useful_threads(threads, B, T, C) == expected


@pytest.mark.parametrize(
    ("d_model", "batch_size", "max_len", "expected"),
    [
        (126, 64, 1024, 1),  # narrow
        (128, 4, 32, 1),
        (128, 32, 128, 8),
        (128, 24, 64, 3),
        (512, 1, 1024, 8),  # the threads of BLAS share one long sequence
    ],
)
def test_training_starts_as_many_threads_as_its_largest_batch_keeps_busy(
    d_model, batch_size, max_len, expected, monkeypatch
):
    monkeypatch.setattr(parallel, "blas_threads", lambda: 8)
    config = TransformerConfig(V, d_model=d_model, num_heads=1, d_ff=8, num_layers=1, max_len=max_len)
    for variable in THREAD_VARIABLES:
        monkeypatch.delenv(variable, raising=False)
    assert parallel.default_threads(config, batch_size) == expected
    monkeypatch.setenv("OMP_NUM_THREADS", "8")
    assert parallel.default_threads(config, batch_size) == expected, "the environment limits, and does not ask for more"


@pytest.mark.parametrize(("seed", "seeds"), [(7, [7]), ([7], [7]), ([7, 1, 2, 3, 4], [7, 1, 2, 3, 4])])
def test_each_thread_has_a_stream_of_its_own_seeded_with_its_number(seed, seeds):
    workers = DataParallel(build(), CrossEntropyLoss(), 3, seed)
    expected = [make_generator(entropy).random() for entropy in (seeds, [*seeds, 1], [*seeds, 2])]
    assert [rng.random() for rng in workers.rngs] == expected


@even_small_parts
@pytest.mark.parametrize("threads", [1, 2])
def test_targets_may_be_one_for_each_sequence(threads):
    batch = Batch(*(ids[:, 0] if i == 2 else ids for i, ids in enumerate(ragged_batch())))
    workers = DataParallel(build(), CrossEntropyLoss(), threads)
    workers.gradients = [lambda part, *more: Measured(np.float64(part.targets.sum()))] * threads
    loss, _ = workers(batch)
    parts = np.array_split(batch.targets, threads)
    assert loss == pytest.approx(sum(part.sum() * len(part) / B for part in parts))


@even_small_parts
def test_an_error_in_a_thread_is_raised_by_the_step():
    batch = ragged_batch()
    batch.source[-1, 0] = V  # in the last thread's part
    with pytest.raises(IndexError, match="the vocabulary has the ids 0 to 18"):
        Trainer(build(), threads=2).step(batch, lr=0.1)


@even_small_parts
def test_after_a_step_no_replica_holds_a_gradient():
    trainer = Trainer(build(), threads=2)
    trainer.step(ragged_batch(), lr=0.1)
    assert all((parameter.grad == 0).all() for parameter in trainer.workers.replicas[1].parameters())


@mock.patch("minitransformer.training.optimizers.BLOCK", 100)
def test_adam_moves_the_same_with_any_number_of_threads():
    one, three = (Trainer(build(), threads=1) for _ in range(2))
    three.optimizer.team = ThreadTeam(3)
    for trainer in (one, three):
        trainer.step(ragged_batch(), lr=0.1)
    np.testing.assert_array_equal(one.optimizer.weights, three.optimizer.weights)


def test_the_weights_of_parts_are_their_shares_of_the_tokens_and_zero_where_there_are_none():
    batch = ragged_batch()
    halves = parallel.split_batch(batch, 2)
    assert [len(part.targets) for part in halves] == [4, 3]
    assert [type(part) for part in halves] == [Batch, Batch]
    assert shares_of([5, 3]) == [5 / 8, 3 / 8]
    assert shares_of([0, 0]) == [0.0, 0.0]
    assert shares_of([1, 0]) == [1.0, 0.0]

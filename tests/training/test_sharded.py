"""Adam spread over several processes moves the weights as one Adam does, and each process holds its part of m and v."""

import math
from functools import partial
from unittest import mock

import numpy as np
import pytest

from minitransformer.data import get_task
from minitransformer.models import Transformer, TransformerConfig
from minitransformer.training import (
    Adam,
    Checkpointer,
    CrossEntropyLoss,
    NotFiniteError,
    Stopped,
    TrainingSettings,
    noam,
    read_run,
    train,
)
from minitransformer.training.parallel.communicator import ONE_PROCESS, Communicator
from minitransformer.training.parallel.processes import ProcessParallel
from minitransformer.training.parallel.sharded import ShardedAdam, gathered_state, gathering
from minitransformer.training.parallel.strategy import Strategy
from minitransformer.training.saving.checkpointer import saved_steps
from tests.helpers import same
from tests.ranks import in_ranks

pytestmark = pytest.mark.host_only  # CuPy's generators cannot be saved

SIZES = {"vocab_size": 29, "d_model": 12, "num_heads": 2, "d_ff": 20, "num_layers": 1, "max_len": 16}
SETTINGS = TrainingSettings(steps=5, batch_size=6, seed=3, max_norm=0.5, deterministic=True)
small_blocks = mock.patch("minitransformer.training.clipping.BLOCK", 100)  # so that a small model has many


def make_model():
    return Transformer(TransformerConfig(dropout=0.0, **SIZES), seed=0)


def make_optimizer(model, communicator, sharded=True, **options):
    return ShardedAdam(model.parameters(), communicator, **options) if sharded else Adam(model.parameters(), **options)


def trained(communicator, sharded=True, weight_decay=0.0, settings=SETTINGS, **options):
    """Train on the copy task -> weights, losses, norms."""
    model = make_model()
    optimizer = make_optimizer(model, communicator, sharded, weight_decay=weight_decay)
    schedule = partial(noam, d_model=12, warmup=4)
    history = train(
        model,
        get_task("copy"),
        optimizer,
        schedule,
        None,
        settings,
        strategy=Strategy(1, communicator),
        **options,
    )
    return optimizer.weights, history.losses, history.norms


@pytest.mark.parametrize("size", [1, 2, 3, 5])
@pytest.mark.parametrize("length", [0, 1, 99, 100, 101, 350, 1000])
@small_blocks
def test_the_shards_of_a_vector_are_whole_blocks_and_nearly_equal(length, size):
    communicator = Communicator()
    communicator.size = size
    shards = communicator.shards(length)
    assert [i for shard in shards for i in range(length)[shard]] == list(range(length))
    assert all(shard.start % 100 == 0 or shard.start == length for shard in shards)
    blocks = [math.ceil((shard.stop - shard.start) / 100) for shard in shards]
    assert max(blocks) - min(blocks) <= 1


@small_blocks
@pytest.mark.parametrize(("size", "max_norm", "weight_decay"), [(2, math.inf, 0.1), (3, 0.5, 0.0)])
def test_sharded_training_gives_the_bits_of_unsharded_training_and_of_one_process(size, max_norm, weight_decay):
    settings = TrainingSettings(steps=4, batch_size=6, max_norm=max_norm, deterministic=True)
    alone = TrainingSettings(steps=4, batch_size=6, max_norm=max_norm, deterministic=True, grad_accumulation_steps=size)
    weights, losses, norms = trained(ONE_PROCESS, False, weight_decay, alone)
    assert min(norms) > 0.5  # so that the gradient is clipped
    one_of_all = partial(trained, weight_decay=weight_decay, settings=settings)
    unsharded, sharded = (in_ranks(size, partial(one_of_all, sharded=sharded)) for sharded in (False, True))
    for result in (*unsharded, *sharded):
        assert same(result[0], weights)
        assert result[1] == pytest.approx(losses, rel=1e-6)
        assert result[2] == unsharded[0][2] == pytest.approx(norms, rel=1e-6)


@small_blocks
@pytest.mark.parametrize("size", [1, 3, 40])
def test_all_processes_together_hold_m_and_v_once(size):
    def lengths(communicator):
        optimizer = make_optimizer(make_model(), communicator)
        return len(optimizer.m), len(optimizer.v), optimizer.weights.size

    found = in_ranks(size, lengths)
    assert all(m == v for m, v, _ in found)
    assert sum(m for m, _, _ in found) == found[0][2]
    assert max(m for m, _, _ in found) <= found[0][2] / size + 100


def test_a_model_of_one_block_is_moved_by_one_process():
    size = 2

    def moved(communicator):
        optimizer = make_optimizer(make_model(), communicator)
        optimizer.flat.grad = np.ones_like(optimizer.weights)
        shared = ProcessParallel(None, CrossEntropyLoss(), communicator, optimizer.parameters, sharded=True)
        norm = shared.norm(optimizer.parameters)
        gathering(optimizer.step, optimizer)()
        return len(optimizer.m), float(norm), optimizer.weights

    single = moved(ONE_PROCESS)
    found = in_ranks(size, moved)
    assert sorted(m for m, _, _ in found) == [0] * (size - 1) + [single[0]]
    assert all(norm == single[1] and same(weights, single[2]) for _, norm, weights in found)


def stopped(folder, communicator, sharded=True):
    """Train three steps and stop with a checkpoint."""
    checkpointer = Checkpointer(folder, interval=100)

    def stop(step, history):
        checkpointer.stop_requested = step == 3

    with pytest.raises(Stopped):
        trained(communicator, sharded, checkpointer=checkpointer, evaluate=stop)


@small_blocks
@pytest.mark.parametrize("size", [1, 5])
def test_a_checkpoint_holds_m_and_v_of_all_processes_for_any_number_of_them(size, tmp_path):
    in_ranks(3, lambda communicator: stopped(tmp_path, communicator))
    arrays, facts = read_run(*saved_steps(tmp_path)).state
    in_ranks(3, lambda communicator: stopped(tmp_path / "unsharded", communicator, sharded=False))
    unsharded, _ = read_run(*saved_steps(tmp_path / "unsharded")).state
    assert same(arrays["adam.m"], unsharded["adam.m"])
    assert same(arrays["adam.v"], unsharded["adam.v"])

    def loaded(communicator):
        optimizer = make_optimizer(make_model(), communicator)
        optimizer.load_state(arrays, facts)
        return same(optimizer.m, arrays["adam.m"][optimizer.shard]), optimizer.t, gathered_state(optimizer)[0]

    results = in_ranks(size, loaded)
    assert [(is_own, t) for is_own, t, _ in results] == [(True, 3)] * size
    assert [list(state) for *_, state in results] == [["adam.m", "adam.v"]] + [[]] * (size - 1)
    assert all(same(array, arrays[name]) for name, array in results[0][2].items())


@small_blocks
def test_a_gradient_that_is_not_finite_in_one_shard_stops_all_before_any_weight_moves():
    settings = TrainingSettings(steps=5, batch_size=6)

    def spoilt(communicator):
        model = make_model()
        optimizer = make_optimizer(model, communicator)
        expand = model.decoder.layers[0].feed_forward.sublayer.expand
        backward, before = expand.backward, optimizer.weights.copy()
        if communicator.rank == 1:
            expand.backward = lambda dy, cache: backward(dy * np.float32(np.inf), cache)
        with pytest.raises(NotFiniteError) as caught:
            train(model, get_task("copy"), optimizer, settings=settings, strategy=Strategy(1, communicator))
        assert same(optimizer.weights, before)
        assert not optimizer.m.any()
        return str(caught.value)

    first, second = in_ranks(2, spoilt)
    assert first == second
    assert "rank 1 of 2" in first


def test_an_optimizer_that_is_sharded_over_other_processes_is_refused():
    model = make_model()
    optimizer = ShardedAdam(model.parameters(), Communicator())
    with pytest.raises(ValueError, match="the optimizer is sharded over other processes than those of the training"):
        train(model, get_task("copy"), optimizer, settings=SETTINGS)

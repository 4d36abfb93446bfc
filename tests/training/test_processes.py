"""Processes that share a batch find what one alone finds, and end together; the processes are threads, without MPI."""

import dataclasses
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
    DataParallel,
    GradientAccumulation,
    NotFiniteError,
    Stopped,
    Strategy,
    TrainingSettings,
    gradients_of,
    read_run,
    step_with,
    train,
)
from minitransformer.training.parallel import threads as parallel
from minitransformer.training.parallel.communicator import ONE_PROCESS, ProcessError
from minitransformer.training.parallel.faults import check_same, ending_together
from minitransformer.training.parallel.processes import ProcessParallel
from minitransformer.training.saving.checkpointer import newest_checkpoint, saved_steps
from tests.helpers import ragged, randomize, relative_error
from tests.ranks import LeftAloneError, in_ranks, outcomes_in_ranks

pytestmark = pytest.mark.host_only

V, B, S, T = 19, 7, 6, 5
SIZES = {"d_model": 12, "num_heads": 3, "d_ff": 20, "num_layers": 1, "max_len": 8}
BOUND = 1e-13
ROUNDING = "kv.b"  # the ending of biases whose gradient is rounding noise

even_small_parts = mock.patch.object(parallel, "MIN_NUMBERS", 1)


def build(dropout=0.0):
    return randomize(Transformer(TransformerConfig(vocab_size=V, dropout=dropout, **SIZES), dtype="float64"), scale=0.3)


def ragged_batch(count=B):
    return ragged(V, (count, S), (count, T))


def whole(batch):
    """Loss, accuracy and gradients of a batch, computed in one piece."""
    model = build()
    loss, accuracy = gradients_of(model, CrossEntropyLoss(0.1))(batch, measure=True)
    return float(loss), float(accuracy), {name: p.grad.copy() for name, p in model.named_parameters()}


def make_workers(communicator, model, steps=1, threads=1, in_order=True):
    parameters, loss_fn = model.parameters(), CrossEntropyLoss(0.1)
    workers = DataParallel(model, loss_fn, threads, [0, 2], rank=communicator.rank)
    accumulation = GradientAccumulation(workers, loss_fn, steps, parameters if in_order else ())
    if communicator.size == 1:
        return accumulation
    return ProcessParallel(accumulation, loss_fn, communicator, parameters, in_order)


def watched(communicator, model, optimizer, detect=False):
    """The gradients of a training, and the check of a step."""
    settings = TrainingSettings(detect_anomaly=detect, deterministic=True)
    strategy = Strategy(1, communicator)
    strategy.compose(model, CrossEntropyLoss(0.1), optimizer, settings)
    return strategy.watch, strategy.watch.check


def shared(batch, communicator, **options):
    """The same of one of several processes that share the batch."""
    model = build()
    loss, accuracy = make_workers(communicator, model, **options)(batch, measure=True)
    return float(loss), float(accuracy), {name: p.grad.copy() for name, p in model.named_parameters()}


def assert_close(result, expected):
    (loss, accuracy, gradients), (loss_expected, accuracy_expected, gradients_expected) = result, expected
    assert abs(loss - loss_expected) < BOUND * loss_expected
    assert abs(accuracy - accuracy_expected) < BOUND
    for name, gradient in gradients_expected.items():
        if not name.endswith(ROUNDING):
            assert relative_error(gradients[name], gradient) < BOUND, name


def assert_same_bits(gradients, expected):
    assert gradients.keys() == expected.keys()
    for name, gradient in expected.items():
        np.testing.assert_array_equal(gradients[name], gradient, err_msg=name)


@pytest.mark.parametrize("size", [2, 3])
def test_processes_with_unequal_numbers_of_tokens_find_what_one_with_as_many_micro_batches_finds(size):
    expected = shared(ragged_batch(), ONE_PROCESS, steps=size)[2]
    for result in in_ranks(size, partial(shared, ragged_batch())):
        assert_close(result, whole(ragged_batch()))
        assert_same_bits(result[2], expected)


@pytest.mark.parametrize(
    ("options", "kind", "in_order"),
    [({}, "add_up", False), ({"in_order": True}, "add_up", True), ({"sharded": True}, "reduce_scatter", True)],
)
def test_gradients_are_added_up_in_order_or_in_shards_only_on_request(options, kind, in_order):
    def calls(communicator):
        model = build()
        workers = DataParallel(model, CrossEntropyLoss(0.1), 1, [0, 2], rank=communicator.rank)
        shared = ProcessParallel(workers, workers.loss_fn, communicator, model.parameters(), **options)
        del communicator.calls[:-1]  # of the weights
        _, accuracy = shared(ragged_batch())
        assert accuracy is None, "it is not measured"
        assert shared.own_part(ragged_batch()).accuracy is None
        return len(model.parameters()), communicator.calls[1:]

    number, found = in_ranks(2, calls)[0]
    sums = [what[-1] for what in found if what[0] == "add_up"]
    assert sums == number * [in_order] + [True], "those of loss and accuracy are always in order"
    assert len([what for what in found if what[0] == "reduce_scatter"]) == number * (kind == "reduce_scatter")


def test_one_process_measures_the_accuracy_only_on_request():
    assert gradients_of(build(), CrossEntropyLoss(0.1))(ragged_batch()).accuracy is None


def test_weight_of_a_batch_scales_the_gradient_and_not_what_is_measured():
    def weighted(communicator):
        model = build()
        loss, accuracy = make_workers(communicator, model)(ragged_batch(), weight=0.25, measure=True)
        return float(loss), float(accuracy), {name: p.grad / 0.25 for name, p in model.named_parameters()}

    for result in in_ranks(2, weighted):
        assert_close(result, whole(ragged_batch()))


def test_process_without_sequences_adds_nothing():
    expected = shared(ragged_batch(2), ONE_PROCESS, steps=2)[2]
    for result in in_ranks(4, partial(shared, ragged_batch(2))):
        assert_close(result, whole(ragged_batch(2)))
        assert_same_bits(result[2], expected)


def test_batch_of_padding_alone_has_neither_loss_nor_gradient():
    batch = ragged_batch()
    batch.target_out[...] = 0
    for loss, accuracy, gradients in in_ranks(3, partial(shared, batch)):
        assert (loss, accuracy) == (0.0, 0.0)
        assert not any(gradient.any() for gradient in gradients.values())


@pytest.mark.parametrize(("steps", "in_order"), [(2, False), (3, True)])
def test_each_process_accumulates_gradients(steps, in_order):
    for result in in_ranks(2, partial(shared, ragged_batch(), steps=steps, in_order=in_order)):
        assert_close(result, whole(ragged_batch()))


def test_no_two_threads_of_all_processes_drop_the_same_units():
    def draw(communicator):
        workers = DataParallel(build(), CrossEntropyLoss(), 2, [0, 2], rank=communicator.rank)
        return [tuple(rng.integers(0, 2**32, 8)) for rng in workers.rngs]

    drawn = [numbers for rank in in_ranks(3, draw) for numbers in rank]
    assert len(set(drawn)) == 6
    threads = DataParallel(build(), CrossEntropyLoss(), 6, [0, 2]).rngs
    assert drawn == [tuple(rng.integers(0, 2**32, 8)) for rng in threads], "those of as many threads of one process"


def test_each_process_clips_by_the_norm_of_the_sum():
    _, _, gradients = whole(ragged_batch())
    norm = np.sqrt(sum((gradient**2).sum() for gradient in gradients.values()))

    def step(communicator):
        model = build()
        optimizer = Adam(model.parameters(), lr=0.01, betas=(0.0, 0.0), eps=norm)  # eps so large that clipping is seen
        gradients, check = watched(communicator, model, optimizer)
        before = optimizer.weights.copy()
        _, seen = step_with(gradients, optimizer, ragged_batch(), 0.25, check=check)
        return float(seen), optimizer.weights - before

    (seen, moved), (seen_too, moved_too) = in_ranks(2, step)
    assert seen == seen_too
    assert abs(seen - norm) < BOUND * norm
    np.testing.assert_array_equal(moved, moved_too)
    clipped = np.concatenate([gradient.reshape(-1) for gradient in gradients.values()]) * 0.25 / (norm + 1e-6)
    assert relative_error(moved, -0.01 * clipped / (abs(clipped) + norm)) < 1e-10


def test_processes_that_begin_with_different_weights_are_refused():
    def start(communicator):
        model = build()
        model.parameters()[0].data[0] += communicator.rank
        make_workers(communicator, model)

    errors = outcomes_in_ranks(2, start)
    assert [type(error) for error in errors] == [ProcessError] * 2
    assert "different weights" in str(errors[0])


def test_processes_that_agree_go_on_and_others_are_told_what_differs():
    in_ranks(2, lambda communicator: check_same(communicator, {"the task": "copy"}))
    errors = outcomes_in_ranks(2, lambda communicator: check_same(communicator, {"the task": communicator.rank}))
    assert [str(error) for error in errors] == ["the task is 1 in rank 1, and 0 in rank 0"] * 2


# whole trainings

SETTINGS = TrainingSettings(steps=6, batch_size=5, seed=3)
LETTERS = {**SIZES, "vocab_size": 29, "max_len": 16}


def run_training(communicator, model=None, settings=SETTINGS, dropout=0.0, **options):
    model = model or Transformer(TransformerConfig(dropout=dropout, **LETTERS), seed=0)
    history = train(model, get_task("copy"), settings=settings, strategy=Strategy(1, communicator), **options)
    return model.state_dict(), history


def parts(count, processes=1):
    """Settings with which the gradients of so many parts are added up in order."""
    return dataclasses.replace(SETTINGS, grad_accumulation_steps=count // processes, deterministic=True)


def test_deterministic_training_in_several_processes_has_the_bits_of_one_with_as_many_micro_batches():
    size = 3
    expected, one = run_training(ONE_PROCESS, settings=parts(size))
    for weights, history in in_ranks(size, partial(run_training, settings=parts(size, size))):
        assert_same_bits(weights, expected)
        np.testing.assert_allclose(history.losses, one.losses, rtol=1e-6)
        np.testing.assert_allclose(history.accuracies, one.accuracies, rtol=1e-6)
        assert (history.norms, history.tokens) == (one.norms, one.tokens)


def test_only_the_root_evaluates_and_the_others_wait():
    evaluated = []

    def work(communicator):
        run_training(communicator, evaluate=lambda step, history: evaluated.append((communicator.rank, step)))

    in_ranks(3, work)
    assert evaluated == [(0, step) for step in range(1, 7)]


def stopped_in(folder, size, settings, step=3, dropout=0.0):
    """Stop a training of `size` processes after `step`; the signal comes to the last one -> the saved run."""

    def work(communicator):
        checkpointer = Checkpointer(folder / str(communicator.rank), interval=2)
        if communicator.rank == size - 1:
            after = checkpointer.after_step

            def after_step(run, signals):
                checkpointer.stop_requested = run.step == step
                after(run, signals)

            checkpointer.after_step = after_step
        run_training(communicator, settings=settings, checkpointer=checkpointer, dropout=dropout)

    errors = outcomes_in_ranks(size, work)
    assert [type(error) for error in errors] == [Stopped] * size, errors
    assert all(f"stopped after step {step}, saved" in str(error) for error in errors)
    assert [bool(saved_steps(folder / str(rank))) for rank in range(size)] == [True] + [False] * (size - 1)
    return partial(read_run, newest_checkpoint(folder / "0"))


def resumed_in(size, read, settings):
    def work(communicator):
        saved = read()
        return run_training(communicator, saved.model, settings, resume=saved.state)

    return in_ranks(size, work) if size > 1 else [work(ONE_PROCESS)]


def test_run_that_is_stopped_in_all_processes_and_resumed_in_as_many_has_the_same_bits(tmp_path):
    settings, dropout = parts(2, 2), 0.2
    expected, _ = in_ranks(2, partial(run_training, settings=settings, dropout=dropout))[0]
    for weights, _ in resumed_in(2, stopped_in(tmp_path, 2, settings, dropout=dropout), settings):
        assert_same_bits(weights, expected)


@pytest.mark.parametrize(("before", "after"), [(1, 3), (3, 1)])
def test_deterministic_run_is_resumed_in_other_processes_with_the_same_bits_if_the_parts_stay(before, after, tmp_path):
    expected, _ = run_training(ONE_PROCESS, settings=parts(3))
    for weights, _ in resumed_in(after, stopped_in(tmp_path, before, parts(3, before)), parts(3, after)):
        assert_same_bits(weights, expected)


def test_processes_that_are_added_draw_dropout_masks_of_their_own(tmp_path):
    saved = stopped_in(tmp_path, 1, SETTINGS, dropout=0.2)()
    assert len(saved.state[1]["dropout_rngs"]) == 1
    again = stopped_in(tmp_path / "more", 3, SETTINGS, dropout=0.2)()
    states = again.state[1]["dropout_rngs"]
    assert len(states) == again.state[1]["processes"] == again.processes == 3
    assert len({str(state) for state in states}) == 3
    assert again.num_threads == 1


# errors


def failing_step(communicator, detect=False, bad_rank=1):
    """Two steps; in the second one, a layer of one rank returns a gradient of nan."""
    model = build()
    batch = ragged_batch()
    optimizer = Adam(model.parameters(), lr=1e-3)
    gradients, check = watched(communicator, model, optimizer, detect)
    step_with(gradients, optimizer, batch, check=check)
    before = optimizer.weights.copy()
    if communicator.rank == bad_rank:
        layer = model.output
        backward = layer.backward
        layer.backward = lambda dy, cache: np.full_like(backward(dy, cache), np.nan)
    try:
        step_with(gradients, optimizer, batch, check=check)
    finally:
        np.testing.assert_array_equal(optimizer.weights, before)


@pytest.mark.parametrize(("bad_rank", "detect"), [(0, True), (2, False)])
def test_nan_in_one_process_is_raised_by_all_with_its_message(bad_rank, detect):
    errors = outcomes_in_ranks(3, partial(failing_step, detect=detect, bad_rank=bad_rank))
    assert [type(error) for error in errors] == [NotFiniteError] * 3, errors
    assert len({str(error) for error in errors}) == 1
    assert str(errors[1]).startswith(
        f"step 2: {'a number is not finite' if detect else 'the norm of the gradient is nan'};"
    )
    assert "the gradient that output (OutputProjection) returns" in str(errors[1])
    assert str(errors[1]).endswith(f"process              rank {bad_rank} of 3")
    assert {error.layer for error in errors} == {"output"}


def test_error_whose_cause_no_process_finds_stays_as_it_is():
    def work(communicator):
        workers, error = make_workers(communicator, build()), NotFiniteError(3, "x")
        workers.agree_on(error)
        return str(error)

    assert in_ranks(2, work) == ["step 3: x"] * 2


@pytest.mark.parametrize(("error", "status"), [(Stopped("x", None), 130), (NotFiniteError(3, "x"), 1)])
def test_error_of_all_processes_is_raised_by_the_root_and_ends_the_others(error, status):
    def work(communicator):
        with ending_together(communicator, lambda error, where: pytest.fail("it is not reported")):
            raise error

    root, *others = outcomes_in_ranks(3, work)
    assert root is error
    assert [(type(other), other.code) for other in others] == [(SystemExit, status)] * 2


@pytest.mark.parametrize(("bad_rank", "error"), [(0, KeyboardInterrupt()), (1, ZeroDivisionError("a bug"))])
def test_error_of_one_process_is_reported_by_it_and_ends_all(bad_rank, error, monkeypatch):
    monkeypatch.setattr("minitransformer.system.launcher.GRACE", 0.0)
    reported = []

    def work(communicator):
        with ending_together(communicator, lambda error, where: reported.append((error, where)) or 7):
            if communicator.rank == bad_rank:
                raise error
            communicator.wait()

    results = outcomes_in_ranks(2, work)
    assert (type(results[bad_rank]), results[bad_rank].code) == (SystemExit, 7)
    assert reported[0] == (error, "rank 1 of 2: " if bad_rank else "")
    assert all(isinstance(error, LeftAloneError) for error, _ in reported[1:])


def test_one_process_alone_raises_its_errors():
    with pytest.raises(KeyError), ending_together(ONE_PROCESS, lambda error, where: 7):
        raise KeyError

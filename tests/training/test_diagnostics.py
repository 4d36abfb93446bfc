"""A step whose loss or gradient is not finite is not taken; any other has the same bits as without the checks."""

import dataclasses
from unittest import mock

import numpy as np
import pytest

from minitransformer.backend import use_backend
from minitransformer.data import get_task
from minitransformer.layers import Embedding, LayerNorm, OutputProjection
from minitransformer.training import Checkpointer, Diagnostics, NotFiniteError, train
from minitransformer.training.saving.checkpointer import saved_steps
from tests.helpers import Trainer
from tests.strict.strict import strict
from tests.training.spoiling import (
    EXPAND,
    RATE,
    SETTINGS,
    V,
    even_small_parts,
    layer_of,
    make_batch,
    make_model,
    make_trainer,
    refused_step,
    spoil,
)

pytestmark = pytest.mark.host_only  # on a GPU the numbers are not checked in every step: see the last tests


@even_small_parts
def test_healthy_training_has_the_same_bits_with_and_without_the_checks():
    def trained(**options):
        trainer = Trainer(make_model(), seed=1, threads=3, **options)
        losses = [float(trainer.step(make_batch(step), RATE)[0]) for step in range(4)]
        return losses, trainer.optimizer.weights.tobytes()

    checked, detected = trained(), trained(detect_anomaly=True)
    plain = lambda self, *batch, **more: self.gradients(*batch, **more)  # noqa: E731
    with mock.patch.object(Diagnostics, "__call__", plain), mock.patch.object(Diagnostics, "check"):
        unchecked = trained()
    assert checked == unchecked
    assert detected == unchecked
    assert len(set(checked[0])) == 4


@even_small_parts
def test_the_repetition_computes_the_very_numbers_of_the_step(monkeypatch):
    plain, seen, runs = LayerNorm.forward, set(), []

    def recorded(self, x, rng=None):
        seen.add(x.tobytes())
        return plain(self, x, rng)

    monkeypatch.setattr(LayerNorm, "forward", recorded)
    monkeypatch.setattr(OutputProjection, "backward", lambda self, dy, cache: np.full_like(cache, np.nan))
    find = Diagnostics._find

    def find_anew(self):
        runs.append(set(seen))
        seen.clear()
        return find(self)

    monkeypatch.setattr(Diagnostics, "_find", find_anew)
    error = refused_step(make_trainer(threads=2, dropout=0.5))
    assert error.layer == "output"
    assert len(seen) > 3
    assert seen <= runs[0], "other dropout masks than in the step"


@pytest.mark.parametrize("detect", [False, True])
@even_small_parts
def test_batch_that_went_wrong_leaves_nothing_to_the_next_step(detect, monkeypatch):
    plain, bad_batch = Embedding.backward, make_batch()
    bad_batch.target_in[-1, 2] = V - 1  # in the last thread's part, whose other layers have their gradients by then

    def backward(self, dy, cache):
        plain(self, dy, cache)
        if (cache.ids == V - 1).any():
            self.E.grad[0, 0] = np.nan

    def trained(with_a_bad_batch):
        trainer = make_trainer(2, detect, dropout=0.0)
        if with_a_bad_batch:
            refused_step(trainer, bad_batch)
        trainer.step(make_batch(1), RATE)
        return trainer.optimizer.weights.tobytes()

    monkeypatch.setattr(Embedding, "backward", backward)
    assert trained(True) == trained(False)


def test_fault_that_is_not_there_the_second_time_is_said_to_be_so(monkeypatch):
    trainer = make_trainer()
    results = iter([np.nan])
    spoil(monkeypatch, trainer, "output", "forward", lambda y, layer: (y[0] * next(results, 1.0), y[1]))
    error = refused_step(trainer)
    assert (error.layer, error.anomaly) == ("", None)
    assert "computed again, all was finite" in str(error)


def test_lost_weights_are_not_saved(tmp_path):
    model, checkpointer = make_model(), Checkpointer(tmp_path, interval=2)
    settings = dataclasses.replace(SETTINGS, steps=6)

    def spoil_after_three(step, history):
        if step == 3:
            layer_of(model, EXPAND).b.data[2] = np.inf
            checkpointer.stop_requested = True  # so that it saves before another step could find out

    with pytest.raises(NotFiniteError, match="step 3: the weights after it are not finite") as caught:
        train(model, get_task("copy"), settings=settings, evaluate=spoil_after_three, checkpointer=checkpointer)
    assert caught.value.layer == EXPAND
    assert [path.name for path in saved_steps(tmp_path)] == ["step-00000002.safetensors"]


def test_lost_weights_are_not_returned_at_the_end():
    model = make_model()
    settings = dataclasses.replace(SETTINGS, steps=6)
    with pytest.raises(NotFiniteError, match="step 6: the weights after it are not finite"):
        train(model, get_task("copy"), settings=settings, evaluate=spoil_weight_after(6, model))


def spoil_weight_after(step, model):
    """A callback for `train`: after this step a weight becomes nan."""

    def evaluate(now, history):
        if now == step:
            layer_of(model, EXPAND).W.data[1, 2] = np.nan

    return evaluate


@pytest.mark.exhaustive
def test_on_a_gpu_all_is_checked_with_the_loss_and_the_first_bad_step_is_named():
    with use_backend(strict):
        model = make_model(dropout=0.0)
        with pytest.raises(NotFiniteError, match="the loss is nan; it was noticed after step 20") as caught:
            train(model, get_task("copy"), settings=SETTINGS, evaluate=spoil_weight_after(6, model))
    assert caught.value.step == 7
    assert "--detect-anomaly" in str(caught.value)


def test_on_a_gpu_nothing_unchecked_is_saved(tmp_path):
    with use_backend(strict):
        model, checkpointer = make_model(dropout=0.0), Checkpointer(tmp_path, interval=2)
        spoil_three = spoil_weight_after(3, model)
        with pytest.raises(NotFiniteError) as caught:
            train(model, get_task("copy"), settings=SETTINGS, evaluate=spoil_three, checkpointer=checkpointer)
    assert caught.value.step == 4
    assert [path.name for path in saved_steps(tmp_path)] == ["step-00000002.safetensors"]


def test_on_a_gpu_every_step_is_checked_where_that_is_asked_for():
    with use_backend(strict):
        model, settings = make_model(), dataclasses.replace(SETTINGS, detect_anomaly=True)
        with pytest.raises(NotFiniteError) as caught:
            train(model, get_task("copy"), settings=settings, evaluate=spoil_weight_after(2, model))
    assert (caught.value.step, caught.value.layer) == (3, EXPAND)

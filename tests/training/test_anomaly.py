"""A step that comes to nan or infinity is not made; one that does not has the same bits as without the checks."""

from unittest import mock

import numpy as np
import pytest

from minitransformer.backend import use_backend
from minitransformer.data import get_task
from minitransformer.layers import Embedding, LayerNorm, OutputProjection
from minitransformer.training import NotFiniteError, Session, Trainer, TrainingSettings, train
from minitransformer.training import diagnostics as anomaly
from minitransformer.training.checkpointer import Keeper, steps_in
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

pytestmark = pytest.mark.host_only  # on a GPU nobody looks in every step: the last tests are of that


@pytest.mark.parametrize("threads", [1, 3])
@even_small_parts
def test_healthy_training_has_the_same_bits_with_and_without_the_checks(threads):
    def trained(**options):
        trainer = Trainer(make_model(), seed=1, threads=threads, **options)
        losses = [float(trainer.step(make_batch(step), RATE)[0]) for step in range(4)]
        return losses, trainer.parameters[0].data.tobytes()

    checked, detected = trained(), trained(detect_anomaly=True)
    with mock.patch.object(anomaly.Guard, "computing", mock.MagicMock()), mock.patch.object(anomaly.Guard, "check"):
        unchecked = trained()
    assert checked == unchecked
    assert detected == unchecked
    assert len(set(checked[0])) == 4


@even_small_parts
def test_the_second_look_computes_the_very_numbers_of_the_step(monkeypatch):
    plain, seen, runs = LayerNorm.forward, set(), []

    def recorded(self, x, rng=None):
        seen.add(x.tobytes())
        return plain(self, x, rng)

    monkeypatch.setattr(LayerNorm, "forward", recorded)
    monkeypatch.setattr(OutputProjection, "backward", lambda self, dy, cache: np.full_like(cache, np.nan))
    find = anomaly.Guard._find

    def find_anew(self, compute):
        runs.append(set(seen))
        seen.clear()
        return find(self, compute)

    monkeypatch.setattr(anomaly.Guard, "_find", find_anew)
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
        return trainer.parameters[0].data.tobytes()

    monkeypatch.setattr(Embedding, "backward", backward)
    assert trained(True) == trained(False)


def test_fault_that_is_not_there_the_second_time_is_said_to_be_so(monkeypatch):
    trainer = make_trainer()
    results = iter([np.nan])
    spoil(monkeypatch, trainer, "output", "forward", lambda y, layer: (y[0] * next(results, 1.0), y[1]))
    error = refused_step(trainer)
    assert (error.layer, error.finding) == ("", None)
    assert "computed again, all was finite" in str(error)


def test_weights_that_are_lost_are_not_put_away(tmp_path):
    session = Session(make_model(), get_task("copy"), TrainingSettings(**SETTINGS))
    keeper = Keeper(tmp_path, every=2)
    for _ in range(2):
        session.advance()
        keeper.after_step(session)
    session.advance()
    layer_of(session.trainer.model, EXPAND).b.data[2] = np.inf
    with pytest.raises(NotFiniteError, match="step 3: the weights after it are not finite") as caught:
        keeper.save(session)
    assert caught.value.layer == EXPAND
    assert [path.name for path in steps_in(tmp_path)] == ["step-00000002.safetensors"]
    with pytest.raises(NotFiniteError, match="the weights after it are not finite"):
        session.finish()


def spoil_weight_after(step, model):
    """For `train`: after this step a weight becomes nan."""

    def watch(now, history):
        if now == step:
            layer_of(model, EXPAND).W.data[1, 2] = np.nan

    return watch


def test_gpu_is_looked_at_with_the_loss_and_the_first_bad_step_is_named():
    with use_backend(strict):
        model = make_model(dropout=0.0)
        with pytest.raises(NotFiniteError, match="the loss is nan; it was seen after step 20") as caught:
            train(model, get_task("copy"), TrainingSettings(**SETTINGS), spoil_weight_after(6, model))
    assert caught.value.step == 7
    assert "--detect-anomaly" in str(caught.value)


def test_gpu_puts_nothing_away_between_the_looks(tmp_path):
    with use_backend(strict):
        model, keeper = make_model(dropout=0.0), Keeper(tmp_path, every=4)
        with pytest.raises(NotFiniteError) as caught:
            train(model, get_task("copy"), TrainingSettings(**SETTINGS), spoil_weight_after(6, model), keeper)
    assert caught.value.step == 7
    assert [path.name for path in steps_in(tmp_path)] == ["step-00000004.safetensors"]


def test_gpu_is_looked_at_in_every_step_where_that_is_asked_for():
    with use_backend(strict):
        model, settings = make_model(), TrainingSettings(**SETTINGS, detect_anomaly=True)
        with pytest.raises(NotFiniteError) as caught:
            train(model, get_task("copy"), settings, spoil_weight_after(6, model))
    assert (caught.value.step, caught.value.layer) == (7, EXPAND)

"""The training loop: it learns, the same seed gives the same bits, and its report counts right."""

import dataclasses
import io
import math
import sys
from functools import partial

import numpy as np
import pytest

from minitransformer.data import get_task
from minitransformer.models import Transformer, TransformerConfig
from minitransformer.training import (
    Adam,
    CrossEntropyLoss,
    TrainingSettings,
    noam,
    step_with,
    train,
)
from minitransformer.training.loop import LOG_INTERVAL
from minitransformer.vocabulary import PAD
from tests.helpers import Trainer, host, randomize, same

SETTINGS = TrainingSettings(steps=6, batch_size=5, seed=3)
SCHEDULE = partial(noam, d_model=12, warmup=4)


class RecordingTask:
    """The copy task, which keeps the batches that it gives away."""

    def __init__(self):
        self.task = get_task("copy")
        self.batches = []

    def batch(self, rng, size):
        self.batches.append(self.task.batch(rng, size))
        return self.batches[-1]


def _model(seed=0, **changes):
    sizes = {"d_model": 12, "num_heads": 2, "d_ff": 20, "num_layers": 1, "max_len": 16}
    return Transformer(TransformerConfig(vocab_size=29, **{**sizes, **changes}), seed=seed)


def _train(model, task=None, settings=SETTINGS, schedule=SCHEDULE):
    return train(model, task or get_task("copy"), schedule=schedule, loss_fn=CrossEntropyLoss(0.1), settings=settings)


def _trained(settings=SETTINGS, schedule=SCHEDULE, **changes):
    model = _model(**changes)
    return _train(model, settings=settings, schedule=schedule), model.state_dict()


def test_each_step_begins_with_a_cleared_gradient():
    model, batch = _model(dropout=0.0), get_task("copy").batch(np.random.default_rng(0), 4)
    trainer = Trainer(model, max_norm=math.inf)
    trainer.step(batch, lr=0.0)
    first = host(trainer.optimizer.flat.grad).copy()
    trainer.step(batch, lr=0.0)
    assert first.any()
    np.testing.assert_array_equal(host(trainer.optimizer.flat.grad), first)


@pytest.mark.parametrize("steps", [1, LOG_INTERVAL, 2 * LOG_INTERVAL + 3])
def test_history_has_an_entry_for_every_step_and_every_look(steps):
    history, _ = _trained(dataclasses.replace(SETTINGS, steps=steps))
    assert len(history.losses) == len(history.norms) == len(history.learning_rates) == steps
    assert len(history.accuracies) == math.ceil(steps / LOG_INTERVAL)
    assert {type(number) for number in history.losses + history.norms + history.accuracies} == {float}
    assert all(0.0 <= accuracy <= 1.0 for accuracy in history.accuracies)


def test_tokens_are_counted_without_padding():
    task = RecordingTask()
    history = _train(_model(), task)
    assert len(task.batches) == 6
    assert {len(batch.source) for batch in task.batches} == {5}
    count = 0
    for batch in task.batches:
        for row in (*batch.source.tolist(), *batch.target_out.tolist()):
            count += sum(1 for token in row if token != PAD)
    assert history.tokens == count


def test_training_is_quiet_where_there_is_no_terminal(capfd):
    _trained()
    assert capfd.readouterr() == ("", "")


def test_training_shows_its_progress_on_a_terminal(monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    monkeypatch.setattr(sys, "stderr", Terminal())
    history, _ = _trained()
    assert f"loss {history.losses[-1]:.3f}, accuracy {history.accuracies[-1]:.1%}" in sys.stderr.getvalue()
    assert " 6/6 " in sys.stderr.getvalue()


def test_without_a_schedule_the_optimizer_keeps_its_learning_rate_and_is_adam_as_in_the_paper():
    model, default = _model(), _model()
    optimizer = Adam(model.parameters(), lr=0.004)
    assert train(model, get_task("copy"), optimizer, settings=SETTINGS).learning_rates == [0.004] * 6
    assert (optimizer.t, optimizer.betas, optimizer.eps) == (6, (0.9, 0.98), 1e-9)
    schedule = lambda step: 0.004  # noqa: E731
    train(default, get_task("copy"), schedule=schedule, settings=SETTINGS)
    assert all(same(array, model.state_dict()[name]) for name, array in default.state_dict().items())


def test_norm_in_the_history_is_that_of_the_gradient_before_clipping():
    loose, tight = (_trained(dataclasses.replace(SETTINGS, max_norm=norm))[0] for norm in (math.inf, 1e-3))
    assert loose.norms[0] == tight.norms[0] > 1e-3
    model, task = _model(), RecordingTask()
    settings = dataclasses.replace(SETTINGS, steps=1, max_norm=math.inf)
    history = train(model, task, schedule=lambda step: 0.0, settings=settings)  # the gradient stays in the model
    squares = sum(float((host(p.grad).astype(np.float64) ** 2).sum()) for p in model.parameters())
    assert math.isclose(history.norms[0], math.sqrt(squares), rel_tol=1e-5)


@pytest.mark.parametrize("eval_interval", [1, 4])
def test_the_evaluation_callback_is_called_every_so_many_steps_with_the_history_so_far(eval_interval):
    calls = []
    settings = dataclasses.replace(SETTINGS, eval_interval=eval_interval)
    train(_model(), get_task("copy"), settings=settings, evaluate=lambda step, h: calls.append((step, len(h.losses))))
    assert calls == [(step, step) for step in range(eval_interval, 7, eval_interval)]


COUNTS = ("steps", "batch_size", "grad_accumulation_steps", "eval_interval")


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        *(("max_norm", value, f"max_norm must be greater than 0, got {value}") for value in (0, -1, math.nan)),
        *((name, value, f"{name} must be at least 1, got {value}") for name in COUNTS for value in (0, -1)),
        *((name, value, f"{name} must be") for name in (*COUNTS, "seed") for value in (math.nan, 2.5)),
    ],
)
def test_settings_refuse_what_cannot_be_counted(name, value, message):
    with pytest.raises((ValueError, TypeError), match=message):
        TrainingSettings(**{name: value})


def test_the_gradient_of_a_step_is_clipped_to_norm_1_by_default():
    batch, moments = get_task("copy").batch(np.random.default_rng(0), 4), []
    for options in ({}, {"max_norm": 1.0}):
        trainer = Trainer(randomize(_model(dropout=0.0)), seed=1)
        _, norm = step_with(trainer.workers, trainer.optimizer, batch, **options)
        assert float(norm) > 2.0
        moments.append(host(trainer.optimizer.m))
    assert same(*moments)

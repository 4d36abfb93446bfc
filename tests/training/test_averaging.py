"""Averaging: the result of training is the mean of the last five sets of weights that were kept, and only of those."""

import dataclasses

import numpy as np
import pytest

from minitransformer.data import get_task
from minitransformer.models import Transformer, TransformerConfig
from minitransformer.training import TrainingSettings, train
from minitransformer.training.averaging import ExponentialAverage, average
from tests.helpers import device, host, relative_error

SETTINGS = TrainingSettings(steps=13, batch_size=3, warmup=2, average_every=0)


def _model():
    config = TransformerConfig(vocab_size=29, d_model=8, num_heads=2, d_ff=12, num_layers=1, max_len=16)
    return Transformer(config, seed=0)


class WatchingTask:
    """The copy task, which notes the weights of the model whenever a step begins."""

    def __init__(self, model):
        self.model = model
        self.weights = []

    def batch(self, rng, size):
        self.weights.append(self.model.state_dict())
        return get_task("copy").batch(rng, size)


def _weights_after_each_step():
    """The weights after 0, 1, ... 13 steps, without averaging."""
    model = _model()
    task = WatchingTask(model)
    train(model, task, SETTINGS)
    return [*task.weights, model.state_dict()]


@pytest.mark.parametrize(
    ("every", "averaged"),
    [(1, [9, 10, 11, 12, 13]), (2, [5, 7, 9, 11, 13]), (4, [1, 5, 9, 13]), (5, [3, 8, 13]), (100, [13]), (0, [13])],
)
def test_result_is_the_mean_of_the_last_five_kept_weights(every, averaged):
    weights = _weights_after_each_step()
    model = _model()
    train(model, get_task("copy"), dataclasses.replace(SETTINGS, average_every=every))
    for name, got in model.state_dict().items():
        expected = sum(weights[step][name].astype(np.float64) for step in averaged) / len(averaged)
        assert got.dtype == np.float32
        assert relative_error(got, expected) < 3e-7, name


def test_averaging_does_not_change_what_is_learnt_on_the_way():
    histories = [
        train(_model(), get_task("copy"), dataclasses.replace(SETTINGS, average_every=every)) for every in (0, 2)
    ]
    assert histories[0].losses == histories[1].losses


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_mean_keeps_the_dtype_and_the_arrays_it_is_of(dtype):
    snapshots = [device(np.array(row, dtype)) for row in ([1, 2, 6], [2, 4, -6], [6, 0, 3])]
    before = [snapshot.copy() for snapshot in snapshots]
    mean = average(snapshots)
    assert mean.dtype == dtype
    assert mean.tolist() == [3, 2, 1]
    for snapshot, kept in zip(snapshots, before, strict=True):
        np.testing.assert_array_equal(host(snapshot), host(kept))


def test_a_negative_distance_between_averaged_weights_is_refused():
    with pytest.raises(ValueError, match="average_every"):
        TrainingSettings(average_every=-1)


@pytest.mark.parametrize("averaged", [1, 3, 20])
def test_as_many_sets_are_averaged_as_asked_for(averaged):
    weights = _weights_after_each_step()
    model = _model()
    train(model, get_task("copy"), dataclasses.replace(SETTINGS, average_every=1, averaged=averaged))
    steps = range(max(1, 14 - averaged), 14)
    for name, got in model.state_dict().items():
        expected = sum(weights[step][name].astype(np.float64) for step in steps) / len(steps)
        assert relative_error(got, expected) < 3e-7, name


def test_an_exponential_average_is_the_sum_that_its_formula_says():
    weights, decay = _weights_after_each_step(), 0.8
    model = _model()
    train(model, get_task("copy"), dataclasses.replace(SETTINGS, ema=decay))
    for name, got in model.state_dict().items():
        shares = [decay ** (13 - step) for step in range(1, 14)]
        parts = [share * weights[step][name].astype(np.float64) for step, share in enumerate(shares, 1)]
        assert got.dtype == np.float32
        assert relative_error(got, sum(parts) / sum(shares)) < 1e-6, name


def test_an_exponential_average_of_equal_weights_is_these_from_the_first_step_on():
    ema, weights = ExponentialAverage(0.99), device(np.array([3.0, -1.0]))
    for _ in range(3):
        ema.update(weights)
        assert relative_error(ema.value(), host(weights)) < 1e-14


def test_an_average_of_nothing_and_a_decay_of_one_are_refused():
    with pytest.raises(ValueError, match="nothing to average"):
        ExponentialAverage(0.9).value()
    for decay in (1.0, -0.1):
        with pytest.raises(ValueError, match="at least 0 and less than 1"):
            ExponentialAverage(decay)
        with pytest.raises(ValueError, match="ema"):
            TrainingSettings(ema=decay)

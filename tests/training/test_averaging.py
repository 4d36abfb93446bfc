"""Averaging: the result of training is the mean of the last five sets of weights that were kept, and only of those."""

import numpy as np
import pytest

from minitransformer.data import get_task
from minitransformer.models import Transformer, TransformerConfig
from minitransformer.training import AverageOfLast, ExponentialAverage, TrainingSettings, train
from tests.helpers import device, relative_error, same

SETTINGS = TrainingSettings(steps=13, batch_size=3)


def _model():
    config = TransformerConfig(vocab_size=29, d_model=8, num_heads=2, d_ff=12, num_layers=1, max_len=16)
    return Transformer(config, seed=0)


def _trained(model, task=None, averaging=None):
    return train(model, task or get_task("copy"), settings=SETTINGS, averaging=averaging)


class RecordingTask:
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
    task = RecordingTask(model)
    _trained(model, task)
    return [*task.weights, model.state_dict()]


@pytest.mark.parametrize(
    ("interval", "averaged"),
    [(1, [9, 10, 11, 12, 13]), (2, [5, 7, 9, 11, 13]), (4, [1, 5, 9, 13]), (5, [3, 8, 13]), (100, [13])],
)
def test_result_is_the_mean_of_the_last_five_kept_weights(interval, averaged):
    weights = _weights_after_each_step()
    model = _model()
    _trained(model, averaging=AverageOfLast(13, interval=interval))
    for name, got in model.state_dict().items():
        expected = sum(weights[step][name].astype(np.float64) for step in averaged) / len(averaged)
        assert got.dtype == np.float32
        assert relative_error(got, expected) < 3e-7, name


def test_by_default_five_sets_are_averaged_forty_steps_apart():
    averaging = AverageOfLast(1000)
    for step in range(1, 1001):
        averaging.update(step, device(np.array([float(step)])))
    kept = {step: float(snapshot[0]) for step, snapshot in averaging.snapshots.items()}
    assert kept == {step: step for step in (840, 880, 920, 960, 1000)}


@pytest.mark.parametrize("name", ["steps", "count", "interval"])
def test_an_average_of_no_sets_or_no_steps_is_refused(name):
    with pytest.raises(ValueError, match=f"{name} must be at least 1, got 0"):
        AverageOfLast(**{"steps": 13, name: 0})


def test_an_exponential_average_is_the_sum_that_its_formula_says():
    weights, decay = _weights_after_each_step(), 0.8
    model = _model()
    _trained(model, averaging=ExponentialAverage(decay))
    for name, got in model.state_dict().items():
        shares = [decay ** (13 - step) for step in range(1, 14)]
        parts = [share * weights[step][name].astype(np.float64) for step, share in enumerate(shares, 1)]
        assert got.dtype == np.float32
        assert relative_error(got, sum(parts) / sum(shares)) < 1e-6, name


@pytest.mark.parametrize("decay", [1.0, -0.1])
def test_a_decay_outside_its_range_is_refused(decay):
    with pytest.raises(ValueError, match="decay must be at least 0 and less than 1"):
        ExponentialAverage(decay)


@pytest.mark.parametrize("updates", [0, 3])
@pytest.mark.parametrize("make", [lambda: AverageOfLast(5, interval=1), lambda: ExponentialAverage(0.7)])
def test_an_average_that_was_saved_continues_with_the_same_bits(make, updates):
    rng, whole, first, second = np.random.default_rng(0), make(), make(), make()
    for step in range(1, 6):
        weights = device(rng.standard_normal(4))
        whole.update(step, weights)
        (first if step <= updates else second).update(step, weights)
        if step == updates:
            second.load_state(*first.state())
    assert same(second.value(), whole.value())


@pytest.mark.parametrize(("steps", "averaged"), [(6, [4, 5, 6]), (7, [5, 6, 7]), (9, [7, 8, 9]), (5, [4, 5])])
def test_an_average_that_continues_for_another_number_of_steps_is_over_the_last_of_these(steps, averaged):
    first, second = (AverageOfLast(end, count=3, interval=1) for end in (6, steps))
    for step in range(1, 6):
        first.update(step, device(np.array([2.0**step])))
    second.load_state(*first.state())
    for step in range(6, steps + 1):
        second.update(step, device(np.array([2.0**step])))
    assert float(second.value()[0]) == pytest.approx(sum(2.0**step for step in averaged) / len(averaged))


def test_the_smallest_numbers_are_accepted():
    averaging = AverageOfLast(steps=1, count=1, interval=1)
    averaging.update(1, device(np.array([3.0])))
    assert averaging.value().tolist() == [3.0]
    last = ExponentialAverage(0.0)  # forgets all but the last
    for step in (1, 2):
        last.update(step, device(np.array([float(step)])))
    assert last.value().tolist() == [2.0]


@pytest.mark.parametrize("make", [lambda: AverageOfLast(3, interval=1), lambda: ExponentialAverage(0.7)])
def test_the_state_before_the_first_update_has_no_arrays(make):
    arrays, facts = make().state()
    assert arrays == {}
    other = make()
    other.load_state(arrays, facts)
    assert other.value() is None


def test_no_step_after_the_last_one_is_averaged():
    averaging = AverageOfLast(4, count=2, interval=1)
    for step in range(1, 7):
        averaging.update(step, device(np.array([float(step)])))
    assert averaging.value().tolist() == [3.5]
    assert [averaging.includes(step) for step in range(1, 7)] == [False, False, True, True, False, False]

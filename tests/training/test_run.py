"""A training run: what it saves, what it refuses to continue from, and what it logs."""

import numpy as np
import pytest

from minitransformer.data import get_task
from minitransformer.models import Transformer, TransformerConfig
from minitransformer.training import Adam, AverageOfLast, CrossEntropyLoss, ExponentialAverage, TrainingSettings
from minitransformer.training.run import TrainingRun
from tests.helpers import same

pytestmark = pytest.mark.host_only  # CuPy's generators cannot be saved

SIZES = {"vocab_size": 29, "d_model": 12, "num_heads": 2, "d_ff": 20, "num_layers": 1, "max_len": 16}


def make_run(steps=2, averaging=None, threads=1, **changes):
    model = Transformer(TransformerConfig(**{**SIZES, **changes}), seed=0)
    settings = TrainingSettings(steps=steps, seed=3)
    return TrainingRun(model, Adam(model.parameters()), CrossEntropyLoss(), settings, averaging, threads)


def advance(run):
    """A step along a gradient of ones, with its entry in the history."""
    run.optimizer.flat.grad = np.ones_like(run.optimizer.weights)
    run.optimizer.step()
    if run.averaging:
        run.averaging.update(run.step, run.optimizer.weights)
    batch = get_task("copy").batch(run.data_rng, 3)
    run.log(batch, np.float32(1.5), np.float32(0.25), np.float32(0.5), 0.01)


def test_run_says_when_it_is_done():
    run = make_run(steps=2)
    for step in (1, 2):
        assert not run.is_done
        advance(run)
        assert run.step == step
    assert run.is_done
    history = run.finish()
    assert (history.losses, history.norms, history.learning_rates) == ([1.5] * 2, [0.25] * 2, [0.01] * 2)
    assert history.accuracies == [0.5] * 2
    assert history.tokens > 0


def test_state_holds_arrays_on_the_host_and_facts_for_json():
    run = make_run(averaging=ExponentialAverage(0.9))
    advance(run)
    arrays, facts = run.state()
    assert all(type(array) is np.ndarray for array in arrays.values())
    assert arrays["adam.m"].any()
    assert arrays["ema"].any()
    assert (facts["step"], facts["ema_updates"]) == (1, 1)


@pytest.mark.parametrize("make", [lambda: None, lambda: AverageOfLast(3, interval=1), lambda: ExponentialAverage(0.9)])
def test_loaded_state_is_the_state_that_was_saved(make):
    run, other = make_run(3, make(), threads=2), make_run(3, make(), threads=2)
    advance(run)
    other.load_state(*run.state())
    (arrays, facts), (other_arrays, other_facts) = run.state(), other.state()
    assert other_facts == facts
    assert other_arrays.keys() == arrays.keys()
    assert all(same(other_arrays[name], array) for name, array in arrays.items())


def test_state_without_norms_has_unknown_norms():
    run, other = make_run(), make_run()
    advance(run)
    arrays, facts = run.state()
    del arrays["norms"]
    other.load_state(arrays, facts)
    assert np.isnan(other.history.norms).all()
    advance(other)
    assert len(other.finish().norms) == 2


@pytest.mark.parametrize("name", ["adam.m", "adam.v", "losses", "learning_rates", "accuracies"])
def test_state_without_an_array_is_refused_by_its_name(name):
    run = make_run()
    arrays, facts = run.state()
    del arrays[name]
    with pytest.raises(ValueError, match=f"this run cannot be resumed: it has no '{name}'"):
        run.load_state(arrays, facts)


@pytest.mark.parametrize("name", ["step", "tokens", "seconds", "data_rng", "dropout_rngs"])
def test_state_without_a_fact_is_refused_by_its_name(name):
    run = make_run()
    arrays, facts = run.state()
    del facts[name]
    with pytest.raises(ValueError, match=f"this run cannot be resumed: it has no '{name}'"):
        run.load_state(arrays, facts)


def test_state_of_another_number_of_threads_is_refused():
    with pytest.raises(ValueError, match=r"trained with 2 threads, but there are 1 now \(--threads\)"):
        make_run().load_state(*make_run(threads=2).state())


def test_state_of_another_model_is_refused():
    with pytest.raises(ValueError, match=r"adam\.m must be of shape"):
        make_run().load_state(*make_run(d_ff=24).state())


def test_finish_puts_the_average_into_the_model():
    run = make_run(averaging=AverageOfLast(2, interval=1))
    advance(run)
    after_first = run.optimizer.weights.copy()
    advance(run)
    expected = (after_first + run.optimizer.weights) / 2
    run.finish()
    assert same(run.optimizer.weights, expected)

"""A training run: what it saves, what it refuses to continue from, and what it logs."""

import copy

import numpy as np
import pytest

from minitransformer.data import get_task
from minitransformer.models import Transformer, TransformerConfig
from minitransformer.training import (
    Adam,
    AverageOfLast,
    CrossEntropyLoss,
    Measured,
    Strategy,
    TrainingSettings,
)
from minitransformer.training.loop import Plan, Taken
from minitransformer.training.run import TrainingRun
from tests.helpers import same

pytestmark = pytest.mark.host_only  # CuPy's generators cannot be saved

SIZES = {"vocab_size": 29, "d_model": 12, "num_heads": 2, "d_ff": 20, "num_layers": 1, "max_len": 16}


def make_run(steps=2, averaging=None, threads=1, resume=None, **changes):
    model = Transformer(TransformerConfig(**{**SIZES, **changes}), seed=0)
    settings = TrainingSettings(steps=steps, seed=3)
    optimizer = Adam(model.parameters())
    plan = Plan(steps, averaging=averaging)
    return TrainingRun(
        model, get_task("copy"), optimizer, CrossEntropyLoss(), settings, plan, Strategy(threads), resume
    )


def advance(run):
    """A step along a gradient of ones, with its entry in the history."""
    run.optimizer.lr = 0.01
    run.optimizer.flat.grad = np.ones_like(run.optimizer.weights)
    run.optimizer.step()
    measured = Measured(np.float32(1.5), np.float32(0.5))
    run.log(Taken(run.step + 1, run.plan, next(run.batches), measured, np.float32(0.25)))


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


ARRAYS = ("adam.m", "adam.v", "losses", "norms", "learning_rates", "accuracies")


@pytest.mark.parametrize("name", [*ARRAYS, "step", "tokens", "seconds", "data_rng", "dropout_rngs"])
def test_state_without_an_array_or_a_fact_is_refused_by_its_name(name):
    run = make_run()
    arrays, facts = run.state()
    del (arrays if name in ARRAYS else facts)[name]
    with pytest.raises(ValueError, match=f"this run cannot be resumed: it has no '{name}'"):
        run.load_state(arrays, facts)


def numbers_of(run):
    """The next random number of each thread, which is not drawn."""
    return [copy.deepcopy(rng).random() for rng in run.strategy.workers.rngs]


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_resumed_run_has_as_many_threads_as_it_had(threads, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "5")
    run = make_run(threads=threads)
    advance(run)
    resumed = make_run(threads=None, resume=run.state())
    assert resumed.strategy.num_threads == threads
    assert numbers_of(resumed) == numbers_of(run)


def test_thread_that_is_left_continues_its_stream_when_a_run_is_resumed_with_fewer():
    run = make_run(threads=3)
    advance(run)
    assert numbers_of(make_run(threads=2, resume=run.state())) == numbers_of(run)[:2]


def test_added_threads_draw_numbers_that_no_thread_has_drawn_before():
    run = make_run(threads=3)
    advance(run)
    fewer = make_run(threads=1, resume=run.state())
    advance(fewer)
    again = make_run(threads=3, resume=fewer.state())
    assert numbers_of(again)[0] == numbers_of(run)[0]
    assert len({*numbers_of(run), *numbers_of(again)}) == 5
    assert numbers_of(make_run(threads=3, resume=fewer.state())) == numbers_of(again)


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

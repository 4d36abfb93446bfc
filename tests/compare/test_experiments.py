"""The experiments of `minitransformer compare`: small parts by hand, and each one whole in a very small form."""

import importlib
import json
import math

import numpy as np
import pytest

from minitransformer.bench import lengths
from minitransformer.compare import EXPERIMENTS, alignment, gradient_reach, one_vector, recall, table1, training
from minitransformer.data import get_task
from tests.cli.run import assert_refused, run

MODULES = [importlib.import_module(f"minitransformer.compare.{name.replace('-', '_')}") for name in EXPERIMENTS]


@pytest.mark.parametrize("module", MODULES, ids=EXPERIMENTS)
def test_an_experiment_has_what_the_command_needs(module):
    assert module.NAME in EXPERIMENTS
    assert module.DESCRIPTION
    assert callable(module.run)


def test_all_experiments_together_stay_within_the_promised_time():
    assert sum(module.SECONDS[True] for module in MODULES) <= 4 * 60
    assert sum(module.SECONDS[False] for module in MODULES) <= 40 * 60


def test_curves_cross_between_two_lengths_along_a_power_law():
    rows = [{"kind": "self-attention", "n": n, "x": n**2} for n in (10, 100, 1000)]
    rows += [{"kind": "other", "n": n, "x": 50 * n} for n in (10, 100, 1000)]
    assert table1.crossing(rows, "other", "x") == pytest.approx(50)
    assert table1.crossing([{**row, "x": 1} for row in rows], "other", "x") is None


def test_even_attention_passes_on_an_equal_share_of_the_gradient():
    for n in (2, 10, 100):
        assert gradient_reach.reach("attention, even", n, 0) == pytest.approx(1 / n)


def test_the_bias_of_the_forget_gate_decides_how_far_a_gradient_of_an_lstm_reaches():
    biases = ("LSTM, forget bias 0", "LSTM, forget bias 1", "LSTM, forget bias log n")
    closed, open_, by_length = (gradient_reach.reach(name, 60, 0) for name in biases)
    assert closed < 1e-3 * open_ < 1e-6 * by_length
    first, second = (gradient_reach.reach(biases[1], n, 0) for n in (60, 120))
    assert second < first**1.5, "it falls geometrically"


@pytest.mark.parametrize("name", training.MODELS)
def test_models_have_as_many_parameters_as_fit(name):
    model = training.make_model(name, 29, seed=0, parameters=30_000)
    assert 0.8 * 30_000 < model.num_parameters() <= 30_000


def test_training_ends_when_its_cpu_time_is_used_up():
    task = get_task("copy")
    model = training.make_model("dot", len(task.vocabulary), seed=0, parameters=5_000)
    trained = training.train_for(model, task, 0.3, seed=0)
    assert trained["steps"] >= 1
    assert math.isfinite(trained["loss"])


def test_a_model_looks_at_the_letter_it_writes_if_the_largest_weight_is_on_it():
    task = get_task("reverse")
    batch = task.batch(np.random.default_rng(0), 1)
    source, target = np.array([[5, 7, 5, 2]]), np.array([[5, 7, 5, 2]])
    batch = batch._replace(source=source, target_out=target)
    weights = np.array([[[0.4, 0.1, 0.3, 0.2], [0.2, 0.3, 0.5, 0.0], [0.0, 0.0, 1.0, 0.0], [0.9, 0.1, 0.0, 0.0]]])
    found = alignment.looks(weights, batch)
    assert found["found"] == pytest.approx(2 / 3), "the second looks elsewhere, and the end does not count"
    assert found["weight"] == pytest.approx((0.7 + 0.3 + 1.0) / 3)


@pytest.fixture
def small(monkeypatch):
    """Every experiment with the smallest sizes that make sense."""
    for module, changes in {
        table1: {"LENGTHS": (8, 16), "SECONDS_PER_LENGTH": 0.0, "DISTANCE": 8, "TOKENS": 16, "WIDTH": 16},
        gradient_reach: {"DISTANCES": (1, 4)},
        one_vector: {"TRAINING": 0.1, "LENGTHS": (1, 2)},
        alignment: {"TRAINING": 0.1, "LENGTH": 3, "SEQUENCES": 4},
        recall: {"TRAINING": 0.1, "PAIRS": (1, 2), "SEQUENCES": 4},
        training: {"BATCH": 4},
        lengths: {"TESTED": 4},
    }.items():
        for name, value in changes.items():
            of_two = isinstance(getattr(module, name), dict)
            monkeypatch.setattr(module, name, dict.fromkeys((True, False), value) if of_two else value)
    for module in (one_vector, alignment, recall):
        monkeypatch.setattr(module, "train_all", lambda work, todo, _: [work(*job) for job in reversed(todo)])
    monkeypatch.setattr("minitransformer.bench.timing.TURN", 0.0)


SMALL = ("table1", "gradient-reach", "one-vector", "alignment", "recall")


def test_the_command_prints_its_time_limit_first_and_draws_every_figure(small, tmp_path, capsys):
    result = run(capsys, "compare", *SMALL, "--quick", "--runs", str(tmp_path), "--json")
    assert result.status == 0
    lines = result.out.splitlines()
    assert lines[0].startswith(f"{', '.join(SMALL)}: at most ")
    figures = {path.name for path in (tmp_path / "compare").iterdir()}
    assert figures == {f"{name.replace('-', '_')}.png" for name in SMALL}
    assert set(json.loads(lines[-1])) == set(SMALL)


def test_an_unknown_experiment_is_refused(capsys):
    assert_refused(run(capsys, "compare", "table2"), "unknown experiment 'table2'; known experiments: table1, ")

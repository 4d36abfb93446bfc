"""Comparisons by seed: intervals of paired differences, and rows that survive an interruption."""

import math

import pytest

from experiments import table3, table4
from experiments.measuring import paired
from minitransformer.data import parsing
from tests.data.library import small_library


def test_an_interval_is_that_of_students_t():
    assert paired.interval([2.0]) == (2.0, math.inf)
    mean, half = paired.interval([1.0, 2.0, 6.0])  # the deviation is sqrt(7), of the mean sqrt(7 / 3)
    assert mean == pytest.approx(3.0)
    assert half == pytest.approx(4.303 * math.sqrt(7 / 3))


def test_a_sentence_on_paired_values_decides_only_what_its_interval_decides():
    assert (
        paired.compared("Loss", [2.0, 3.0, 7.0], [1.0, 1.0, 1.0]) == "Loss: 4.00 against 1.00 (3.00 ± 6.57: undecided)."
    )
    assert paired.compared("Loss", [1.0, 2.0, 3.1], [2.0, 3.0, 4.0]).endswith("(-0.97 ± 0.14: less).")
    assert paired.compared("Loss", [3.0, 2.0], [1.0, 0.0], ".0f") == "Loss: 2 against 0 (2 ± 0: more)."
    assert paired.compared("Loss", [3.0], [1.0]) == "Loss: 3.00 against 1.00 (2.00 in one seed: undecided)."


def test_an_interrupted_experiment_measures_no_row_twice(tmp_path):
    path, measured = tmp_path / "experiments" / "rows.jsonl", []

    def work(name, seed):
        if len(measured) == 2:
            raise KeyboardInterrupt
        measured.append((name, seed))
        return {"name": name, "score": seed / 3}

    todo = [(name, seed) for seed in (0, 1) for name in ("a", "b")]
    with pytest.raises(KeyboardInterrupt):
        paired.collect(path, todo, work)
    measured.append("interrupted")
    rows = paired.collect(path, todo, work)
    assert measured == [("a", 0), ("b", 0), "interrupted", ("a", 1), ("b", 1)]
    assert rows == [{"name": name, "score": seed / 3} for name, seed in todo]


@pytest.mark.exhaustive
def test_training_takes_the_steps_that_it_is_given_and_lowers_the_loss(monkeypatch):
    small_library(monkeypatch)
    task, model = parsing.ParsingTask(), table4.make(table4.LSTM, 0)
    before, texts = paired.score(model, task)
    trained = paired.train_steps(model, task, 30, seed=0, peak=1e-2)
    after, _ = paired.score(model, task)
    assert trained["steps"] == 30
    assert after["loss"] < 0.7 * before["loss"]
    assert {text for text, _, _ in texts} <= set(parsing.examples())
    assert all(parsing.examples()[text] == tree for text, _, tree in texts)


@pytest.mark.parametrize("name", [table4.ONE, table4.LSTM, table4.TRANSFORMER])
def test_models_of_table_4_have_nearly_as_many_parameters(name):
    assert 0.9 * table4.PARAMETERS < table4.make(name, None).num_parameters() <= table4.PARAMETERS


def test_every_variation_is_a_model_and_changes_one_thing():
    for name, variation in table3.VARIATIONS.items():
        changes = {**variation.changes}
        few = changes.pop("few", False)
        assert few == name.startswith("few")
        assert len(changes) == (0 if name.endswith("base") else 1)
        changes.pop("smoothing", None)
        table3.TransformerConfig(9, **{**table3.BASE, **changes})

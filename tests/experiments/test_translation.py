"""The experiment with real sentences, in a very small form and on a few sentences of our own."""

import argparse
import dataclasses

import pytest

from experiments import translation
from minitransformer.recipes import get_recipe
from tests.cli.run import run


@pytest.mark.exhaustive
def test_all_models_are_scored_on_the_same_sentences(small):
    rows = translation.rows(argparse.Namespace(quick=True, seed=0))["models"]
    assert [row["model"] for row in rows] == ["lstm", "lstm-attention", "transformer"]
    for row in rows:
        assert row["steps"] > 0
        assert row["tokens"] > row["steps"]
        assert row["sentences"] == sum(group["sentences"] for group in row["by_length"]) == 3


@pytest.mark.exhaustive
def test_no_model_has_more_parameters_than_the_transformer_and_all_nearly_as_many(small):
    recipe = get_recipe("translation")
    data = recipe.data(recipe.defaults)
    sizes = {}
    for name in translation.TITLES:
        options = dataclasses.replace(recipe.defaults, model=name)
        model_class, config = translation.make_config(recipe, options, data)
        sizes[name] = model_class(config, seed=None).num_parameters()
    assert all(0.8 * sizes["transformer"] < size <= sizes["transformer"] for size in sizes.values())


def test_without_the_sentences_the_experiment_is_refused(monkeypatch, capsys, tmp_path):
    def missing():
        raise ValueError("the sentences are not installed")

    monkeypatch.setattr(translation, "database_path", missing)
    status, _, err = run(capsys, "experiment", "translation", "--runs", tmp_path)
    assert (status, err) == (2, "minitransformer experiment: the sentences are not installed\n")

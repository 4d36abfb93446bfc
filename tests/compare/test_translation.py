"""The experiment with real sentences, in a very small form and on a few sentences of our own."""

import dataclasses
import itertools
import json

import pytest

from minitransformer.compare import translation
from minitransformer.data import PairCorpus
from minitransformer.recipes import get_recipe
from tests.cli.run import run

NOUNS = (("Hund", "dog"), ("König", "king"), ("Vogel", "bird"), ("Baum", "tree"))
PAIRS = [(f"Der {a} und der {b} sind hier.", f"The {c} and the {d} are here.") for (a, c), (b, d) in
         itertools.product(NOUNS, NOUNS)]  # fmt: skip


@pytest.fixture
def small(monkeypatch):
    """A few sentences, and a tenth of a second of training in this process."""
    monkeypatch.setattr(
        "minitransformer.recipes.translation.load_bible",
        lambda source, target: PairCorpus(PAIRS[:12], PAIRS[12:13], PAIRS[13:]),
    )
    monkeypatch.setattr(translation, "database_path", lambda: None)
    monkeypatch.setattr(translation, "train_all", lambda work, todo, _: [work(*job) for job in reversed(todo)])
    monkeypatch.setattr(translation, "TRAINING", {True: 0.1, False: 0.1})
    small = {"d_model": 32, "vocab_size": 280, "batch_size": 100}
    recipe = get_recipe("translation")
    monkeypatch.setattr(recipe, "defaults", type(recipe.defaults)(**small))


def test_all_models_are_scored_on_the_same_sentences(small, tmp_path, capsys):
    result = run(capsys, "compare", "translation", "--quick", "--runs", str(tmp_path), "--json")
    assert (result.status, result.err) == (0, "")
    assert (tmp_path / "compare" / "translation.png").stat().st_size > 0
    rows = json.loads(result.out.splitlines()[-1])["translation"]["rows"]
    assert [row["model"] for row in rows] == ["lstm", "lstm-attention", "transformer"]
    for row in rows:
        assert row["steps"] > 0
        assert row["tokens"] > row["steps"]
        assert row["sentences"] == sum(group["sentences"] for group in row["by_length"]) == 3


def test_no_model_has_more_parameters_than_the_transformer_and_all_nearly_as_many(small):
    recipe = get_recipe("translation")
    data = recipe.data(recipe.defaults)
    sizes = {}
    for name in translation.TITLES:
        options = dataclasses.replace(recipe.defaults, model=name)
        model_class, config = translation.make_config(recipe, options, data)
        sizes[name] = model_class(config, seed=None).num_parameters()
    assert all(0.8 * sizes["transformer"] < size <= sizes["transformer"] for size in sizes.values())


def test_without_the_sentences_the_experiment_is_refused_alone_and_left_out_among_others(monkeypatch, capsys, tmp_path):
    def missing():
        raise ValueError("the sentences are not installed")

    monkeypatch.setattr(translation, "database_path", missing)
    refused = run(capsys, "compare", "translation")
    assert (refused.status, refused.err) == (2, "minitransformer compare: the sentences are not installed\n")
    monkeypatch.setattr("minitransformer.cli.compare.EXPERIMENTS", ("translation",))
    result = run(capsys, "compare", "--runs", str(tmp_path))
    assert (result.status, result.err) == (0, "")
    assert "left out: the sentences are not installed" in result.out

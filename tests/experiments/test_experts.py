"""Experts: kinds of characters, which models differ in what, who starves, and what a router's gradient is."""

import argparse

import numpy as np
import pytest

from minitransformer.data.text import Corpus, TextTask
from minitransformer.experiments import experts
from minitransformer.models import GPT, gpt_config
from minitransformer.tokenizers import CharacterTokenizer

TEXT = "The 3 cats (and 25 dogs) sat; a mat. " * 12


def task():
    return TextTask(Corpus(TEXT, TEXT[:200]), CharacterTokenizer.train(TEXT), experts.LENGTH)


def test_every_character_has_one_kind():
    kinds = [experts.kind_of(character) for character in "aeZ7 \n(y"]
    assert kinds == ["vowel", "vowel", "capital", "digit", "space", "space", "other", "consonant"]
    assert set(kinds) == set(experts.KINDS)


def test_a_token_uses_as_many_weights_as_the_dense_model_has():
    models = {
        name: GPT(gpt_config(9, **experts.SIZES, **fields), seed=None) for name, fields in experts.ROUTERS.items()
    }
    for name, model in models.items():
        others = sum(
            p.data.size for key, p in model.named_parameters() if ".experts." in key and ".experts.0." not in key
        )
        routers = sum(p.data.size for key, p in model.named_parameters() if key.endswith(("router.W", "sublayer.bias")))
        assert model.num_parameters() - others - routers == models["dense"].num_parameters(), name


@pytest.fixture(scope="module")
def row():
    return experts.train_and_look("softmax", 3, task(), steps=3)


def test_the_loads_of_a_layer_are_shares_and_the_mean_of_its_kinds(row):
    given = task()
    (held_out,) = given.held_out_batches(128)
    kinds = [experts.kind_of(given.tokenizer.tokens[i]) for i in held_out.ids.reshape(-1)]
    for loads, of_kinds in zip(row["loads"], row["kinds"], strict=True):
        assert sum(loads) == pytest.approx(1.0)
        counts = [kinds.count(kind) for kind in experts.KINDS]
        assert np.average(of_kinds, axis=0, weights=counts) == pytest.approx(loads)
    expected = np.mean([load < 1 / (4 * experts.EXPERTS) for loads in row["loads"] for load in loads])
    assert row["starved"] == pytest.approx(expected)


def test_one_renormalized_expert_leaves_the_router_as_it_was_drawn(row):
    renormalized = experts.train_and_look("renormalized", 3, task(), steps=3)
    assert (renormalized["moved"], renormalized["gradient"]) == (0.0, 0.0)
    assert row["moved"] > 0
    assert row["gradient"] > 0


def made_up(seed, **changes):
    """A row for each router: the loss falls from one to the next, and only the balanced ones starve nobody."""
    rows = []
    for i, name in enumerate(experts.ROUTERS):
        row = {
            "router": name,
            "seed": seed,
            "parameters": 10 + i,
            "seconds": 2.0 + i,
            "loss": 3.0 - 0.1 * i + 0.001 * seed,
        }
        if name != "dense":
            loads = [[1 / 8] * 8] * 2 if name in experts.BALANCED.values() else [[1.0] + [0.0] * 7] * 2
            row |= {"loads": loads, "kinds": [[load] * 6 for load in loads], "moved": 0.0 + i, "gradient": 0.5 * i}
            row["starved"] = float(np.mean(np.array(loads) < 1 / 32))
        rows.append(row | changes)
    return rows


def test_findings_name_what_the_interval_decides():
    rows = {"trainings": [row for seed in range(3) for row in made_up(seed)]}
    text = "\n".join(experts.findings(rows))
    assert "renormalized: the largest entry of a router's gradient is 0.5 at the end" in text
    assert "the most that one moved in training is 1." in text
    assert "Loss with a router that learns against one that stays as drawn: 2.801 against 2.901 (-0.100" in text
    assert (
        "softmax, share of starved experts with balancing against none: 0.00 against 0.88 (-0.88 ± 0.00: less)." in text
    )
    assert "sigmoid, loss with balancing against none: 2.501 against 2.601 (-0.100 ± 0.000: less)." in text
    assert "softmax, balance loss, loss of eight experts against one network: 2.701 against 3.001" in text
    assert text.endswith("Training takes 2.5 times as long as with one network.")
    (table,) = experts.tables(rows)
    assert [line[0] for line in table.cells] == list(experts.ROUTERS)
    assert table.cells[0][3:] == [""] * 4
    assert table.cells[3][3:] == ["0.00 ± 0.00", "0.12 ± 0.00", "3", "1.5"]


def test_an_interrupted_experiment_goes_on_where_it_stopped(tmp_path, monkeypatch):
    done = []

    def look(name, seed, task, steps):
        if len(done) == 4:
            raise KeyboardInterrupt
        done.append((name, seed))
        return made_up(seed)[list(experts.ROUTERS).index(name)]

    monkeypatch.setattr(experts, "train_and_look", look)
    options = argparse.Namespace(quick=True, seed=0, runs=tmp_path)
    with pytest.raises(KeyboardInterrupt):
        experts.rows(options)
    monkeypatch.setattr(experts, "train_and_look", lambda name, seed, *_: done.append((name, seed)) or {"router": name})
    found = experts.rows(options)["trainings"]
    assert done == [(name, seed) for seed in (0, 1) for name in experts.ROUTERS]
    assert [row["router"] for row in found] == [*experts.ROUTERS] * 2

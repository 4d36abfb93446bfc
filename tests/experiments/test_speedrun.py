"""The speedrun: which changes a row has, how it is trained, and how it is scored."""

import json

import numpy as np
import pytest

from experiments import speedrun
from minitransformer.data import Corpus, TextTask
from minitransformer.models import GPT, gpt_config
from minitransformer.recipes import get_recipe
from minitransformer.tokenizers import CharacterTokenizer
from tests.cli.run import assert_refused, run

SMALL = {"length": 8, "tokens": 0, "d_model": 8, "num_heads": 2, "d_ff": 12, "num_layers": 1, "batch": 3, "warmup": 2}


class Recorded(TextTask):
    """A task that remembers the batches asked for: (windows, tokens in each)."""

    def batch(self, rng, size):
        self.asked.append((size, self.length))
        return super().batch(rng, size)


@pytest.fixture
def task(monkeypatch):
    text = "".join(f"{i} times {i} is {i * i}.\n" for i in range(150))
    task = Recorded(Corpus(text, text[::-1][:601]), CharacterTokenizer.train(text), 8)
    task.asked = []
    monkeypatch.setattr(speedrun, "text", lambda tokens, length: task)
    return task


@pytest.fixture
def changes(monkeypatch):
    found = {
        "first": (True, {}),
        "won": (True, {"peak": 0.5}),
        "lost": (False, {"batch": 99, "peak": 0.7}),
        "last": (True, {"batch": 16}),
    }
    monkeypatch.setattr(speedrun, "CHANGES", found)


def test_a_row_has_all_earlier_changes_that_were_kept_and_its_own(changes):
    assert speedrun.setup("first") == (speedrun.START, "")
    assert speedrun.setup("lost") == ({**speedrun.START, "peak": 0.7, "batch": 99}, "won")
    assert speedrun.setup("last") == ({**speedrun.START, "peak": 0.5, "batch": 16}, "won")


@pytest.mark.exhaustive
def test_muon_is_compared_with_adam_for_as_many_steps_and_for_as_long(task):
    how = {**speedrun.START, **SMALL, "muon": 3.0}
    muon, steps, seconds = speedrun.compare(how, 0, 40)["rows"]
    assert muon["steps"] == steps["steps"] == 40
    assert 0 <= seconds["seconds"] - muon["seconds"] < 0.5
    assert [row["base"] for row in (muon, steps, seconds)] == ["", muon["row"], muon["row"]]
    assert muon["bits"] != steps["bits"]


def test_the_score_is_that_of_the_recipe(task):
    model = GPT(gpt_config(task.tokenizer.vocab_size, d_model=8, num_heads=2, num_layers=1, max_len=8), seed=3)
    recipe = get_recipe("shakespeare")
    expected, _ = recipe.evaluate(recipe.defaults, model, task)
    assert speedrun.bits(model, task) == pytest.approx(expected["bits_per_character"], rel=1e-6)


def test_short_windows_have_as_many_tokens_and_end_after_their_share_of_the_training(task):
    row = speedrun.train({**speedrun.START, **SMALL, "windows": ((0.5, 2),)}, 0, steps=6)
    assert task.asked == 3 * [(12, 2)] + 3 * [(3, 8)]
    assert task.length == 8
    assert row["steps"] == 6


@pytest.mark.parametrize("muon", [0.0, 3.0])
def test_the_rate_rises_over_the_warm_up_and_falls_like_a_cosine_over_the_training(task, muon, monkeypatch):
    rates = []
    monkeypatch.setattr(speedrun, "clip_factor", lambda norm, most: 0.0)
    for kind in (speedrun.Adam, speedrun.Muon):
        step = kind.step
        monkeypatch.setattr(kind, "step", lambda self, scale, s=step: (rates.append(self.lr), s(self, scale=scale))[1])
    speedrun.train({**speedrun.START, **SMALL, "muon": muon, "peak": 0.1}, 0, steps=8)
    expected = 0.05 * (1 + np.cos(np.pi * np.arange(8) / 8))
    expected[0] /= 2
    np.testing.assert_allclose(rates[:: 2 if muon else 1], expected)


def test_rows_can_be_trained_for_a_number_of_steps_instead_of_seconds(task, monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(speedrun, "START", {**speedrun.START, **SMALL})
    monkeypatch.setattr(speedrun, "CHANGES", {"first": (True, {})})
    monkeypatch.setattr(speedrun, "LONGER", {"second": (False, {"peak": 0.5})})
    outcome = run(capsys, "experiment", "speedrun", "--rows", "first", "second", "--steps", 3, "--runs", tmp_path)
    rows = json.loads((tmp_path / "experiments" / "speedrun.json").read_text("utf-8"))["rows"]["rows"]
    assert outcome.status == 0
    assert [(row["row"], row["base"], row["kept"], row["steps"]) for row in rows[:2]] == [
        ("first", "", "yes", 3),
        ("second", "first", "no", 3),
    ]


def test_no_steps_are_refused(capsys, tmp_path):
    outcome = run(capsys, "experiment", "speedrun", "--steps", 0, "--runs", tmp_path)
    assert_refused(outcome, "--steps must be at least 1, got 0")


def test_with_cooling_the_rate_stays_at_its_peak_and_falls_to_zero_in_a_straight_line():
    rates = [speedrun.falling(share, 0.4) for share in (0.0, 0.6, 0.7, 0.9, 1.0)]
    np.testing.assert_allclose(rates, [1, 1, 0.75, 0.25, 0], atol=1e-12)


def test_with_zeros_each_layer_adds_nothing_at_first(task, monkeypatch):
    models = []
    monkeypatch.setattr(speedrun, "GPT", lambda *a, **options: (models.append(GPT(*a, **options)), models[-1])[1])
    monkeypatch.setattr(speedrun.Adam, "step", lambda self, scale: None)
    how = {**speedrun.START, **SMALL, "norm": "pre"}
    for zeros in (True, False):
        speedrun.train({**how, "zeros": zeros}, 0, steps=1)
    x = np.random.default_rng(0).normal(size=(2, 5, 8)).astype(np.float32)
    ends = [model.blocks.layers[0].forward(x, None)[0] for model in models]
    np.testing.assert_array_equal(ends[0], x)
    assert np.abs(ends[1] - x).max() > 0.1


def test_training_ends_when_its_processor_time_is_used(task):
    row = speedrun.train({**speedrun.START, **SMALL}, 0, seconds=0.2)
    assert row["seconds"] >= 0.2
    assert 0 < row["moving"] < 1
    assert [at for at, _ in row["curve"]] == sorted(at for at, _ in row["curve"])

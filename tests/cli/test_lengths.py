"""`minitransformer lengths` and the benchmark of decoding: small runs from start to end."""

import json

import matplotlib.image
import numpy as np
import pytest

from minitransformer.bench import decoding, lengths, timing
from minitransformer.config import POSITIONS
from tests.cli.run import assert_refused, run


@pytest.mark.exhaustive
@pytest.mark.draws
def test_every_choice_is_trained_on_both_tasks_and_drawn(capsys, tmp_path, monkeypatch):
    monkeypatch.setattr(lengths, "TASKS", ("copy",))
    arguments = ("lengths", "--steps", 1, "--runs", tmp_path, "--json")
    status, out, err = run(capsys, *arguments)
    assert (status, err) == (0, "")
    rows = json.loads(out.splitlines()[-1])["rows"]
    assert [row["positions"] for row in rows] == list(POSITIONS)
    assert all(len(row["exact_match"]) == len(lengths.LENGTHS) for row in rows)
    assert matplotlib.image.imread(tmp_path / "lengths" / "lengths.png").std() > 0.01


def test_all_twelve_trainings_are_on_the_list():
    assert len(set(lengths.jobs())) == 12


@pytest.mark.parametrize("option", ["--steps", "--jobs"])
def test_no_steps_and_no_jobs_are_refused(option, capsys):
    assert_refused(run(capsys, "lengths", option, "0"), f"{option} must be at least 1, got 0")


@pytest.mark.parametrize("batch", [1, 3])
def test_both_sides_of_the_decoding_benchmark_decode_the_same_tokens(batch, monkeypatch):
    pytest.importorskip("torch")
    monkeypatch.setattr(decoding, "COUNT", 9)
    ours, theirs = decoding.numpy_decoding("tiny", batch)(), decoding.pytorch_decoding("tiny", batch, 1)()
    assert ours.shape == (batch, 9)
    np.testing.assert_array_equal(ours, theirs)


@pytest.mark.draws
def test_decoding_prints_a_row_for_each_size_and_batch_and_draws_the_cost(capsys, tmp_path, monkeypatch):
    for name, value in {"COUNT": 4, "LONG": 32, "RECOMPUTED": (16, 32), "BATCHES": (1, 2)}.items():
        monkeypatch.setattr(decoding, name, value)
    monkeypatch.setattr(timing, "TURN", 0.001)
    status, out, err = run(capsys, "bench", "--decoding", "--seconds", 0.01, "--runs", tmp_path, "--json")
    assert (status, err) == (0, "")
    result = json.loads(out.splitlines()[-1])
    assert [(row["size"], row["batch"]) for row in result["rows"]] == [
        ("tiny", 1),
        ("tiny", 2),
        ("small", 1),
        ("small", 2),
    ]
    assert list(result["recomputed"]) == ["16", "32"]
    assert matplotlib.image.imread(tmp_path / "bench" / "bench_decoding.png").std() > 0.01


def test_the_cost_of_each_token_is_measured(monkeypatch):
    monkeypatch.setattr(decoding, "LONG", 32)
    monkeypatch.setattr(decoding, "RECOMPUTED", (16, 32))
    seconds, recomputed = decoding.cost_per_token("tiny", 2, repeats=1)
    assert seconds.shape == (32,)
    assert (seconds > 0).all()
    assert list(recomputed) == [16, 32]

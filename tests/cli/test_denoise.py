"""`train denoise`: text in, a model that fills in [MASK], and what is refused."""

import json

import pytest

from tests.cli.run import assert_refused, run
from tests.data.test_denoising import prose

SMALL = ("--d-model", 16, "--num-layers", 1, "--vocab-size", 280, "--batch-size", 200, "--warmup", 2, "--threads", 1)


@pytest.fixture(autouse=True)
def text(tmp_path, monkeypatch):
    """Every test runs in a folder that holds only a text."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("minitransformer.system.progress.LINE_INTERVAL", float("inf"))
    (tmp_path / "my.txt").write_text(prose(600), encoding="utf8")


@pytest.mark.exhaustive
def test_a_model_is_trained_resumed_and_fills_in_masks(capsys, tmp_path):
    status, out, err = run(capsys, "train", "denoise", "--text", "my.txt", *SMALL, "--steps", 10, "--json")
    assert (status, err) == (0, "")
    result = json.loads(out.splitlines()[-1])
    assert (result["task"], result["steps"]) == ("denoise", 10)
    assert "passages to learn from" in out
    assert "[MASK]" in out
    assert "\n  right: " in out
    (folder,) = (tmp_path / "runs").iterdir()
    lines = (folder / "translations.tsv").read_text("utf8").splitlines()
    assert len(lines) == 1 + result["test_pairs"]
    again = run(capsys, "train", "--resume", f"runs/{folder.name}", "--steps", 12, "--json")
    assert json.loads(again.out.splitlines()[-1])["steps"] == 12
    status, out, _ = run(capsys, "translate", f"runs/{folder.name}", "The [MASK] bird.", "--json")
    assert status == 0
    assert json.loads(out.splitlines()[-1])[0]["source"] == "The [MASK] bird."


def test_what_cannot_be_restored_is_refused(capsys, tmp_path):
    (tmp_path / "short.txt").write_text("Two words.", encoding="utf8")
    refused = "train: no pair to validate on has at most 256 tokens on both sides\n"
    assert_refused(run(capsys, "train", "denoise", "--text", "short.txt", *SMALL), refused)
    kinds = "train: --noise must be one of both, order, infilling, got 'typos'\n"
    assert_refused(run(capsys, "train", "denoise", "--noise", "typos"), kinds)
    assert_refused(run(capsys, "train", "denoise", "--passage", 0), "train: --passage must be at least 1, got 0\n")

"""Recurrent models on the command line: training, figures, resuming and generating."""

import pytest

from minitransformer.models import Seq2Seq
from minitransformer.recipes.toy import RECURRENT
from minitransformer.system.files import read_safetensors
from minitransformer.training import load_checkpoint
from tests.cli.run import run, stopping_after
from tests.kills import same_weights


@pytest.mark.parametrize(
    "model",
    [
        pytest.param(name, marks=pytest.mark.exhaustive if name == "lstm-attention" else pytest.mark.weekly)
        for name in RECURRENT
    ],
)
@pytest.mark.draws
def test_a_run_that_was_stopped_is_resumed_with_the_same_bits_and_draws_its_figures(model, capsys, tmp_path):
    task = ("copy", "--model", model, "--steps", 6, "--batch-size", 4, "--dropout", 0.1, "--name", "copy")
    with stopping_after(3):
        assert run(capsys, "train", *task, "--runs", tmp_path / "stopped")[0] == 130
    assert run(capsys, "train", "--resume", tmp_path / "stopped" / "copy")[0] == 0
    assert run(capsys, "train", *task, "--runs", tmp_path / "whole")[0] == 0
    resumed, whole = (read_safetensors(tmp_path / name / "copy/model.safetensors")[0] for name in ("stopped", "whole"))
    assert same_weights(resumed, whole)
    figures = {path.name for path in (tmp_path / "whole" / "copy").glob("*.png")}
    assert figures == ({"loss.png", "attention.png"} if "attention" in model else {"loss.png"})


@pytest.mark.parametrize("model", [pytest.param("lstm", marks=pytest.mark.exhaustive), "gru-attention"])
def test_a_trained_model_answers_prompts(model, capsys, tmp_path):
    task = ("reverse", "--model", model, "--steps", 2, "--batch-size", 4, "--name", "reverse")
    assert run(capsys, "train", *task, "--runs", tmp_path)[0] == 0
    status, out, _ = run(capsys, "generate", tmp_path / "reverse", "--prompt", "hello")
    assert (status, out.count("\n")) == (0, 1)
    loaded, metadata = load_checkpoint(tmp_path / "reverse" / "model.safetensors")
    assert (type(loaded), metadata["task"]) == (Seq2Seq, "reverse")
    assert (loaded.config.cell, loaded.config.attention) == tuple(RECURRENT[model].values())

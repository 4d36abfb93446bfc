"""Runs that version 0.1 saved are resumed, and end where version 0.1 would have ended.

tests/reference/make_old_run.py has made the files: a checkpoint after step 70 of 100, and the model at the end.
"""

import shutil
from pathlib import Path

import numpy as np
import pytest

from minitransformer.cli import main
from minitransformer.recipes.resume import options_to_resume, read_saved_run
from minitransformer.training import load_checkpoint, save_checkpoint
from tests.helpers import relative_error

REFERENCE = Path(__file__).parents[1] / "reference"


@pytest.fixture
def old_run(tmp_path):
    """The folder of checkpoints as version 0.1 left it."""
    folder = tmp_path / "runs" / "copy.training"
    folder.mkdir(parents=True)
    shutil.copy(REFERENCE / "old_run.safetensors", folder / "step-00000070.safetensors")
    return folder


def test_options_of_version_0_1_are_read(old_run):
    path, saved = read_saved_run(old_run)
    recipe, options = options_to_resume(path, saved)
    assert (recipe.name, saved.step, options.runs) == ("copy", 70, old_run.parent)
    assert (options.steps, options.batch_size, options.warmup, options.seed) == (100, 4, 20, 3)
    assert (options.dropout, options.label_smoothing, options.factor, options.threads) == (0.1, 0.1, 0.3, 1)
    assert (options.norm, options.model, options.positions) == ("post", "transformer", "sinusoidal")
    assert (options.checkpoint_interval, options.keep_checkpoints) == (200, 2), "0.1 did not save these"


def test_a_run_of_version_0_1_ends_as_version_0_1_would_have_ended_it(old_run, monkeypatch, capsys):
    monkeypatch.setattr("minitransformer.recipes.toy.TESTED", 20)
    assert main(["train", "--resume", str(old_run)]) == 0
    assert "resuming copy after step 70" in capsys.readouterr().out
    folder = old_run.parent / "copy"
    assert sorted(path.name for path in folder.iterdir()) == [
        "attention.png",
        "log.csv",
        "loss.png",
        "model.safetensors",
    ]
    assert not old_run.exists()
    got, expected = (
        load_checkpoint(file)[0] for file in (folder / "model.safetensors", REFERENCE / "old_run_finished.safetensors")
    )
    assert got.config == expected.config
    for name, array in expected.state_dict().items():
        # the same bits on the processor that made the file; another one rounds otherwise, and Adam divides that by 1e-9
        assert array.dtype == np.float64
        assert relative_error(got.state_dict()[name], array) < 1e-6, name
    rows = [line.split(",") for line in (folder / "log.csv").read_text().splitlines()[1:]]
    assert len(rows) == 100
    assert [row[2] == "nan" for row in rows] == [True] * 70 + [False] * 30, "0.1 saved no norms"


@pytest.mark.parametrize(
    ("about", "message"),
    [
        ({}, "does not say with which options it was started"),
        ({"recipe": "copy"}, "does not say with which options it was started"),
        ({"recipe": 3, "options": {}}, "does not say with which options it was started"),
        ({"arguments": {"steps": 5}}, "does not say with which options it was started"),
        ({"recipe": "poetry", "options": {}}, "task must be one of copy"),
        ({"recipe": "copy", "options": {"steps": "many"}}, "does not hold options of copy: its option steps is 'many'"),
        ({"recipe": "copy", "options": {"steps": 0}}, "does not hold options of copy: --steps must be at least 1"),
        ({"arguments": {"task": "copy", "every": 0}}, "does not hold options of copy: --checkpoint-interval"),
    ],
)
def test_options_that_are_none_are_refused(about, message, tmp_path):
    model, metadata = load_checkpoint(REFERENCE / "old_run.safetensors")
    path = tmp_path / "step-00000003.safetensors"
    save_checkpoint(path, model, training=metadata["training"], about=about)
    with pytest.raises(ValueError, match=message):
        options_to_resume(*read_saved_run(path))

"""A training that is stopped, or killed, is resumed from the command line, and nothing of it is lost unasked."""

import signal

import numpy as np
import pytest

from minitransformer.files import read_safetensors
from minitransformer.training import Session
from tests.cli.run import assert_refused, run
from tests.kills import kill_again_and_again, same_weights

TASK = ("copy", "--steps", 6, "--batch-size", 4, "--dropout", 0.1)


@pytest.fixture
def folders(tmp_path):
    return ("--runs", tmp_path / "runs", "--plots", tmp_path / "plots")


@pytest.fixture
def stopped(folders, capsys, monkeypatch, tmp_path):
    """A training that was interrupted after its third step -> its folder."""
    advance = Session.advance
    monkeypatch.setattr(Session, "advance", lambda self: interrupted_at(self, advance, 3))
    status, _, err = run(capsys, "train", *TASK, *folders)
    monkeypatch.setattr(Session, "advance", advance)
    folder = tmp_path / "runs" / "copy.training"
    assert status == 130
    assert f"stopped after step 3, saved {folder}/step-00000003.safetensors" in err
    assert f"go on with: minitransformer train --resume {folder}" in err
    return folder


def interrupted_at(session, advance, step):
    """One step, after which SIGTERM comes if it was number `step`."""
    looked = advance(session)
    if session.step == step:
        signal.raise_signal(signal.SIGTERM)
    return looked


def test_stopped_training_goes_on_to_the_same_bits(stopped, capsys, tmp_path):
    status, out, _ = run(capsys, "train", "--resume", stopped)
    assert status == 0
    assert "going on with copy after step 3" in out
    assert not stopped.exists(), "the model is there, so its checkpoints are not needed"
    other = ("--runs", tmp_path / "other", "--plots", tmp_path / "plots")
    assert run(capsys, "train", *TASK, *other)[0] == 0
    resumed, whole = (read_safetensors(tmp_path / name / "copy.safetensors")[0] for name in ("runs", "other"))
    assert same_weights(resumed, whole)


def test_unfinished_training_is_not_dropped_unasked(stopped, folders, capsys):
    assert_refused(run(capsys, "train", *TASK, *folders), "holds a training that has not ended", "--resume", "--fresh")
    assert run(capsys, "train", *TASK, *folders, "--fresh")[0] == 0
    assert not stopped.exists()


def test_what_cannot_be_resumed_is_said(stopped, capsys, tmp_path):
    assert_refused(run(capsys, "train", "reverse", "--resume", stopped), "is a training of copy, not of reverse")
    assert_refused(run(capsys, "train", "--resume", stopped, "--fresh"), "give one of them")
    assert_refused(run(capsys, "train", "--resume", tmp_path / "nowhere"), "there is no file")
    assert_refused(run(capsys, "train"), "say what to learn")
    (stopped / "step-00000003.safetensors").write_bytes(b"nonsense")
    assert_refused(run(capsys, "train", "--resume", stopped), "step-00000003.safetensors")


@pytest.mark.parametrize("option", ["--every", "--keep"])
def test_no_checkpoints_at_all_are_refused(option, folders, capsys):
    assert_refused(run(capsys, "train", *TASK, *folders, option, 0), f"{option[2:]} must be at least 1, got 0")


def test_training_that_is_killed_again_and_again_ends_with_the_same_bits(tmp_path):
    (whole,) = kill_again_and_again(tmp_path, 0, np.random.default_rng(0))[2]
    kills, _, endings = kill_again_and_again(tmp_path, 4, np.random.default_rng(1))
    assert kills == 4
    assert all(same_weights(whole, weights) for weights in endings)

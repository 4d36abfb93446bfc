"""Runs are neither lost nor mixed: one training in a folder at a time, and errors that say what is left."""

import errno
import json
import os
from pathlib import Path

import pytest

from minitransformer.recipes.folder import locked
from minitransformer.system.files import read_safetensors
from minitransformer.training import load_checkpoint
from tests.cli.run import COPY, assert_refused, run, stopping_after
from tests.kills import same_weights

TASK = ("train", *COPY)
RUN = Path("runs/copy")
MODEL = RUN / "model.safetensors"


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """The current folder, which is empty."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def files():
    return sorted(path.name for path in RUN.iterdir())


def contents():
    return {path: path.read_bytes() for path in RUN.rglob("*") if path.is_file()}


def test_overwritten_model_stays_until_the_new_one_is_finished(copy_of, capsys):
    copy_of("finished")
    before, config = read_safetensors(MODEL)[0], json.loads((RUN / "config.json").read_text("utf8"))
    (RUN / "sample.txt").write_text("of a text with the same name")
    with stopping_after(3):
        assert run(capsys, *TASK, "--seed", 1, "--overwrite").status == 130
    assert same_weights(read_safetensors(MODEL)[0], before)
    assert not (RUN / "checkpoint.safetensors").exists()
    now = json.loads((RUN / "config.json").read_text("utf8"))
    assert now.pop("run") != config.pop("run"), "whose checkpoints are here"
    assert now == config
    assert run(capsys, "train", "--resume", RUN).status == 0
    assert not same_weights(read_safetensors(MODEL)[0], before)
    assert json.loads((RUN / "config.json").read_text("utf8"))["options"]["seed"] == 1
    finished = ["attention.png", "checkpoint.safetensors", "config.json", "log.csv", "loss.png", "model.safetensors"]
    assert files() == finished


@pytest.mark.exhaustive
def test_unfinished_run_is_deleted_if_that_is_asked_for(copy_of, capsys):
    copy_of("stopped")
    assert run(capsys, *TASK, "--overwrite").status == 0
    assert not (RUN / "checkpoints").exists()


def test_nothing_is_changed_by_an_overwriting_run_that_cannot_begin(copy_of, capsys):
    copy_of("stopped")
    before = contents()
    outcome = run(capsys, "train", "masked", "--text", "missing.txt", "--name", "copy", "--overwrite")
    assert_refused(outcome, "there is no file missing.txt")
    assert contents() == before


def test_second_training_in_a_folder_is_refused(copy_of, capsys):
    copy_of("stopped")
    with locked(RUN):
        before = contents()
        for words in (TASK, (*TASK, "--overwrite"), ("train", "--resume", RUN)):
            assert_refused(run(capsys, *words), f"train: runs/copy is in use: process {os.getpid()} on ")
        assert contents() == before


def test_lock_exists_during_training_and_not_after_it(capsys, monkeypatch):
    seen = []

    def evaluate(self, options, model, data):
        seen.append((RUN / "lock").exists())
        raise KeyboardInterrupt

    monkeypatch.setattr("minitransformer.recipes.toy.ToyRecipe.evaluate", evaluate)
    last = RUN / "checkpoints" / "step-00000006.safetensors"
    assert run(capsys, *TASK) == (
        130,
        "copy: 235,328 parameters, 6 steps\n",
        f"minitransformer train: stopped, the newest checkpoint is {last}\n"
        "resume with: minitransformer train --resume runs/copy\n",
    )
    assert seen == [True]
    assert files() == ["checkpoints", "config.json"]


def test_result_is_not_lost_when_a_file_besides_the_model_cannot_be_written(capsys, monkeypatch):
    replace = os.replace

    def full(source, target):
        if Path(target).name == "log.csv":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        replace(source, target)

    monkeypatch.setattr(os, "replace", full)
    outcome = run(capsys, *TASK, "--json")
    assert outcome.status == 2
    said = "the model is saved in runs/copy, but not all of its log and figures: cannot write runs/copy/log.csv"
    assert outcome.err == f"minitransformer train: {said}: No space left on device\n"
    assert "exact match on held-out" in outcome.out
    assert json.loads(outcome.out.splitlines()[-1]) == load_checkpoint(MODEL)[1]

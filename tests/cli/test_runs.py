"""Runs are neither lost nor mixed: one folder each, one training at a time, and errors that say what is left."""

import contextlib
import errno
import hashlib
import json
import os
from pathlib import Path

import pytest

from minitransformer.recipes.folder import locked
from minitransformer.system.files import read_safetensors
from minitransformer.training import load_checkpoint
from tests.cli.run import assert_refused, run
from tests.cli.test_resume import stopping_after
from tests.kills import same_weights

TASK = ("train", "copy", "--steps", 4, "--batch-size", 4, "--name", "mine")
RUN = Path("runs/mine")
MODEL = RUN / "model.safetensors"


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """The current folder, which has a text and nothing else."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my.txt").write_text("".join(f"{i} times {i} is {i * i}.\n" for i in range(400)), encoding="utf8")
    return tmp_path


def weights():
    return read_safetensors(MODEL)[0]


def files():
    return sorted(path.name for path in RUN.iterdir())


def test_runs_that_differ_have_folders_of_their_own(capsys):
    for options in ([], ["--seed", 1], ["--model", "gpt"], ["--threads", 1, "--name", "other"]):
        assert run(capsys, "train", "sort", "--steps", 1, "--batch-size", 2, *options).status == 0
    assert sorted(path.name for path in Path("runs").iterdir()) == [
        "other",
        "sort-batch-size-2-model-gpt-steps-1",
        "sort-batch-size-2-seed-1-steps-1",
        "sort-batch-size-2-steps-1",
    ]


def test_finished_model_is_not_overwritten_unasked(capsys):
    assert run(capsys, *TASK).status == 0
    before = weights()
    outcome = run(capsys, *TASK, "--seed", 1)
    assert_refused(outcome, "runs/mine holds a finished model: save this run elsewhere with --name NAME, or", "--overw")
    assert same_weights(weights(), before)


def test_overwritten_model_stays_until_the_new_one_is_finished(capsys):
    assert run(capsys, *TASK).status == 0
    before, config = weights(), json.loads((RUN / "config.json").read_text("utf8"))
    (RUN / "sample.txt").write_text("of a text with the same name")
    with stopping_after(3):
        assert run(capsys, *TASK, "--seed", 1, "--overwrite").status == 130
    assert same_weights(weights(), before)
    now = json.loads((RUN / "config.json").read_text("utf8"))
    assert now.pop("run") != config.pop("run"), "whose checkpoints are here"
    assert now == config
    assert_refused(run(capsys, *TASK), "runs/mine holds an unfinished run: resume it with `minitransformer train --re")
    assert run(capsys, "train", "--resume", RUN).status == 0
    assert not same_weights(weights(), before)
    assert json.loads((RUN / "config.json").read_text("utf8"))["options"]["seed"] == 1
    finished = ["attention.png", "checkpoint.safetensors", "config.json", "log.csv", "loss.png", "model.safetensors"]
    assert files() == finished


def test_unfinished_run_is_deleted_only_if_that_is_asked_for(capsys):
    with stopping_after(3):
        assert run(capsys, *TASK).status == 130
    outcome = run(capsys, *TASK)
    assert_refused(outcome, "runs/mine holds an unfinished run: resume it with `minitransformer train --resume runs/mi")
    assert run(capsys, *TASK, "--overwrite").status == 0
    assert not (RUN / "checkpoints").exists()


def test_nothing_is_deleted_by_an_overwriting_run_that_cannot_begin(capsys):
    with stopping_after(3):
        assert run(capsys, *TASK).status == 130
    outcome = run(capsys, "train", "masked", "--text", "missing.txt", "--name", "mine", "--overwrite")
    assert_refused(outcome, "there is no file missing.txt")
    assert run(capsys, "train", "--resume", RUN).status == 0


@pytest.mark.parametrize("words", [TASK, (*TASK, "--overwrite"), ("train", "--resume", RUN)])
def test_second_training_in_a_folder_is_refused_and_the_first_goes_on(words, capsys):
    with stopping_after(2):
        assert run(capsys, *TASK).status == 130
    before = [path.read_bytes() for path in (RUN / "checkpoints").iterdir()]
    with locked(RUN):
        assert_refused(run(capsys, *words), f"train: runs/mine is in use: process {os.getpid()} on ")
        assert [path.read_bytes() for path in (RUN / "checkpoints").iterdir()] == before
    assert run(capsys, "train", "--resume", RUN).status == 0


def test_lock_exists_during_training_and_not_after_it(capsys, monkeypatch):
    seen = []

    def evaluate(self, options, model, data):
        seen.append((RUN / "lock").exists())
        raise KeyboardInterrupt

    monkeypatch.setattr("minitransformer.recipes.toy.ToyRecipe.evaluate", evaluate)
    last = RUN / "checkpoints" / "step-00000004.safetensors"
    assert run(capsys, *TASK) == (
        130,
        "copy: 235,328 parameters, 4 steps\n",
        f"minitransformer train: stopped, the newest checkpoint is {last}\n"
        "resume with: minitransformer train --resume runs/mine\n",
    )
    assert seen == [True]
    assert files() == ["checkpoints", "config.json"]


@contextlib.contextmanager
def disk_full(name):
    """Inside a `with` block no file called `name` can be written."""
    replace = os.replace

    def full(source, target):
        if Path(target).name == name:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        replace(source, target)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "replace", full)
        yield


@pytest.mark.parametrize("name", ["step-00000003.safetensors", "model.safetensors"])
def test_on_a_full_disk_the_newest_checkpoint_is_named_and_can_be_resumed(name, capsys):
    with disk_full(name):
        outcome = run(capsys, *TASK, "--checkpoint-interval", 1)
    last = f"step-0000000{2 if name.startswith('step') else 4}.safetensors"
    assert outcome.status == 2
    path = RUN / "checkpoints" / name if name.startswith("step") else RUN / name
    assert outcome.err == (
        f"minitransformer train: cannot write {path}: No space left on device; the newest checkpoint is "
        f"{RUN / 'checkpoints' / last}, resume with: minitransformer train --resume runs/mine\n"
    )
    assert ("exact match on held-out" in outcome.out) == (name == "model.safetensors"), "the result is not lost"
    assert run(capsys, "train", "--resume", RUN).status == 0
    resumed = weights()
    assert run(capsys, *TASK, "--overwrite").status == 0
    assert same_weights(weights(), resumed)


@pytest.mark.parametrize("name", ["config.json", "log.csv", "loss.png", "attention.png"])
def test_result_is_not_lost_when_a_file_besides_the_model_cannot_be_written(name, capsys):
    RUN.mkdir(parents=True)
    MODEL.write_bytes(b"old")  # so that config.json is not written before training
    with disk_full(name):
        outcome = run(capsys, *TASK, "--json", "--overwrite")
    assert outcome.status == 2
    said = "the model is saved in runs/mine, but not all of its log and figures: cannot write runs/mine/"
    assert outcome.err == f"minitransformer train: {said}{name}: No space left on device\n"
    assert "exact match on held-out" in outcome.out
    assert json.loads(outcome.out.splitlines()[-1]) == load_checkpoint(MODEL)[1]


def test_table_is_printed_before_figures_are_drawn(capsys, monkeypatch):
    def draw(self, trained, folder):
        raise ZeroDivisionError

    monkeypatch.setattr("minitransformer.recipes.toy.ToyRecipe.draw", draw)
    with pytest.raises(ZeroDivisionError):
        run(capsys, *TASK)
    assert "exact match on held-out" in capsys.readouterr().out
    assert load_checkpoint(MODEL)[1]["steps"] == 4


def test_path_and_hash_of_the_text_are_saved(capsys, folder):
    sizes = ("--length", 16, "--d-model", 8, "--num-layers", 1, "--steps", 2, "--batch-size", 2, "--name", "mine")
    assert run(capsys, "train", "masked", "--text", "my.txt", *sizes).status == 0
    data = json.loads((RUN / "config.json").read_text("utf8"))["data"]
    sha256 = hashlib.sha256(Path("my.txt").read_bytes()).hexdigest()
    assert data == {"text": str(folder / "my.txt"), "sha256": sha256}

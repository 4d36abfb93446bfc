"""A run that is stopped, or killed, is resumed from the command line; options that cannot change are refused."""

import contextlib
import dataclasses
import hashlib
import math
import shutil
import signal
from pathlib import Path

import numpy as np
import pytest

from minitransformer.recipes import RECIPES
from minitransformer.recipes.options import option_name
from minitransformer.recipes.run import find_checkpoint
from minitransformer.system.files import read_safetensors
from minitransformer.system.process import THREAD_VARIABLES, limit_threads
from minitransformer.training import load_checkpoint, read_run
from minitransformer.training.run import TrainingRun
from tests.cli.run import assert_refused, run
from tests.kills import kill_again_and_again, same_weights

TASK = ("copy", "--steps", 6, "--batch-size", 4, "--dropout", 0.1, "--name", "copy")
TEXT = "".join(f"{i} times {i} is {i * i}.\n" for i in range(400))
SMALL = ("--length", 16, "--d-model", 16, "--num-layers", 1, "--batch-size", 4, "--name", "text")
FIXED = [  # an option of any task, with a value, that a resumed run cannot change
    f"{option_name(field.name)}={getattr(recipe.defaults, field.name)}".removesuffix("=False").replace("None", "1")
    for recipe in RECIPES.values()
    for field in dataclasses.fields(recipe.defaults)
    if not field.metadata["resumable"]
]


@pytest.fixture
def folders(tmp_path):
    return ("--runs", tmp_path / "runs")


@pytest.fixture
def stopped(folders, capsys, tmp_path):
    """A run that was stopped after its third step -> its folder."""
    with stopping_after(3):
        status, _, err = run(capsys, "train", *TASK, *folders)
    folder = tmp_path / "runs" / "copy"
    assert status == 130
    assert f"stopped after step 3, saved {folder}/checkpoints/step-00000003.safetensors" in err
    assert f"resume with: minitransformer train --resume {folder}\n" in err
    return folder


@contextlib.contextmanager
def stopping_after(step):
    """Inside a `with` block SIGTERM comes in this step."""
    log = TrainingRun.log

    def log_and_stop(self, *numbers):
        log(self, *numbers)
        if self.step == step:
            signal.raise_signal(signal.SIGTERM)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(TrainingRun, "log", log_and_stop)
        yield


@pytest.mark.parametrize("path", ["", "checkpoints", "checkpoints/step-00000003.safetensors"])
def test_stopped_run_is_resumed_with_the_same_bits(path, stopped, capsys, tmp_path):
    status, out, _ = run(capsys, "train", "--resume", stopped / path)
    assert status == 0
    assert "resuming copy after step 3" in out
    names = sorted(file.name for file in stopped.iterdir())
    kept = "checkpoint.safetensors"
    assert names == ["attention.png", kept, "config.json", "log.csv", "loss.png", "model.safetensors"]
    assert run(capsys, "train", *TASK, "--runs", tmp_path / "other")[0] == 0
    folders = stopped, tmp_path / "other" / "copy"
    resumed, whole = (read_safetensors(folder / "model.safetensors")[0] for folder in folders)
    assert same_weights(resumed, whole)
    assert folders[0].joinpath("log.csv").read_bytes() == folders[1].joinpath("log.csv").read_bytes()


def test_a_run_with_muon_is_resumed_with_the_same_bits(folders, capsys, tmp_path):
    with stopping_after(3):
        assert run(capsys, "train", *TASK, *folders, "--optimizer", "muon").status == 130
    assert run(capsys, "train", "--resume", tmp_path / "runs" / "copy").status == 0
    assert run(capsys, "train", *TASK, "--runs", tmp_path / "other", "--optimizer", "muon").status == 0
    assert run(capsys, "train", *TASK, "--runs", tmp_path / "adam").status == 0
    resumed, whole, adam = (weights(tmp_path / folder / "copy") for folder in ("runs", "other", "adam"))
    assert same_weights(resumed, whole)
    assert not same_weights(resumed, adam)


def test_what_cannot_be_resumed_is_said(stopped, capsys, tmp_path):
    outcome = run(capsys, "train", "--resume", stopped, "copy")
    assert_refused(outcome, "give a task, such as `train reverse`, or a run to continue")
    assert_refused(run(capsys, "train", "--resume", tmp_path / "nowhere"), "there is no file")
    assert not (tmp_path / "nowhere").exists()
    assert_refused(run(capsys, "train"), "give a task, such as `train reverse`, or a run to continue")
    (stopped / "checkpoints" / "step-00000003.safetensors").write_bytes(b"nonsense")
    assert_refused(run(capsys, "train", "--resume", stopped), "step-00000003.safetensors")


@pytest.fixture
def finished(stopped, capsys):
    """A run that has taken all of its six steps -> its folder."""
    assert run(capsys, "train", "--resume", stopped).status == 0
    return stopped


def weights(folder):
    """The weights of a finished model."""
    return read_safetensors(folder / "model.safetensors")[0]


@pytest.mark.parametrize("path", ["", "checkpoint.safetensors"])
def test_finished_run_is_continued_with_the_bits_of_a_run_of_so_many_steps(path, finished, capsys, tmp_path):
    status, out, _ = run(capsys, "train", "--resume", finished / path, "--steps", 9)
    assert status == 0
    assert "resuming copy after step 6\n" in out
    assert "not the same" not in out
    assert run(capsys, "train", *TASK, "--steps", 9, "--runs", tmp_path / "other").status == 0
    whole = tmp_path / "other" / "copy"
    assert same_weights(weights(finished), weights(whole))
    assert (finished / "log.csv").read_bytes() == (whole / "log.csv").read_bytes()
    assert sorted(file.name for file in finished.iterdir()) == sorted(file.name for file in whole.iterdir())
    assert read_run(find_checkpoint(finished)).step == 9


def test_continued_run_keeps_its_finished_model_until_the_end_and_can_be_interrupted(finished, capsys, tmp_path):
    before = weights(finished)
    with stopping_after(8):
        status, _, err = run(capsys, "train", "--resume", finished, "--steps", 10)
    assert status == 130
    assert f"resume with: minitransformer train --resume {finished}\n" in err
    assert same_weights(weights(finished), before)
    assert read_run(finished / "checkpoint.safetensors").step == 6
    assert run(capsys, "train", "--resume", finished).status == 0
    assert run(capsys, "train", *TASK, "--steps", 10, "--runs", tmp_path / "other").status == 0
    assert same_weights(weights(finished), weights(tmp_path / "other" / "copy"))


@pytest.mark.parametrize("words", [(), ("--steps", 6), ("--steps", 2)])
def test_finished_run_without_more_steps_says_how_to_go_on(words, finished, capsys):
    before = weights(finished)
    outcome = run(capsys, "train", "--resume", finished, *words)
    said = f"the run in {finished} is finished after 6 steps: to train it for longer, give more than these, with "
    assert_refused(outcome, f"{said}minitransformer train --resume {finished} --steps N")
    assert same_weights(weights(finished), before)


def test_finished_run_without_its_checkpoint_says_how_to_train_for_longer(finished, capsys):
    (finished / "checkpoint.safetensors").unlink()
    outcome = run(capsys, "train", "--resume", finished, "--steps", 9)
    assert_refused(outcome, f"the run in {finished} is finished, and no checkpoint of it was kept", "--overwrite")


def test_overwriting_a_finished_run_deletes_the_checkpoint_of_the_old_one(finished, folders, capsys):
    assert (finished / "checkpoint.safetensors").exists()
    with stopping_after(1):
        assert run(capsys, "train", *TASK, "--seed", 1, "--overwrite", *folders).status == 130
    assert not (finished / "checkpoint.safetensors").exists()


def test_damaged_checkpoint_of_a_finished_run_is_named(finished, capsys):
    (finished / "checkpoint.safetensors").write_bytes(b"nonsense")
    outcome = run(capsys, "train", "--resume", finished, "--steps", 9)
    assert_refused(outcome, f"{finished}/checkpoint.safetensors", f"{finished} has no sound checkpoint")


def test_damaged_checkpoint_of_a_continued_run_leads_back_to_the_finished_one(finished, capsys):
    with stopping_after(7):
        assert run(capsys, "train", "--resume", finished, "--steps", 9).status == 130
    find_checkpoint(finished).write_bytes(b"nonsense")
    kept = finished / "checkpoint.safetensors"
    outcome = run(capsys, "train", "--resume", finished)
    assert_refused(outcome, f"resume with: minitransformer train --resume {kept} --steps N")
    assert run(capsys, "train", "--resume", kept, "--steps", 9).status == 0


def test_sets_of_weights_that_a_longer_run_would_average_are_said_to_be_missing(capsys, folders, tmp_path):
    long = ("train", *TASK, "--steps", 42, *folders)
    assert run(capsys, *long).status == 0
    status, out, _ = run(capsys, "train", "--resume", tmp_path / "runs" / "copy", "--steps", 44)
    assert status == 0
    lost = "4 of the sets of weights that it would average were not kept"
    assert f"not the same as a run started with --steps 44: {lost}\n" in out


def test_options_that_a_resumed_run_cannot_change_are_refused_by_name(stopped, capsys):
    before = read_safetensors(find_checkpoint(stopped))[0]
    for option in dict.fromkeys(FIXED):
        for words in ([option], option.split("=")):
            outcome = run(capsys, "train", "--resume", stopped, *words)
            name = option.partition("=")[0]
            refused = f"minitransformer train: {name} must follow a task, and cannot be changed when a run is resumed\n"
            assert_refused(outcome, refused)
    assert len(set(FIXED)) >= 15
    assert same_weights(read_safetensors(find_checkpoint(stopped))[0], before)


@pytest.mark.parametrize("words", [["--fly", "9"], ["--fly=9"], ["-f", "9"]])
def test_unknown_option_is_named_and_its_value_is_not_taken_for_a_task(words, stopped, capsys):
    outcome = run(capsys, "train", "--resume", stopped, *words)
    assert_refused(outcome, f"minitransformer train: unrecognized arguments: {words[0]} (see")


def test_an_option_of_another_task_is_refused_for_a_resumed_run(stopped, capsys):
    outcome = run(capsys, "train", "--resume", stopped, "--peak", 0.1)
    tasks = "text, shakespeare, masked, classify, digits, denoise, translation"
    assert_refused(outcome, f"copy has no option --peak; tasks with this option: {tasks}\n")


def test_options_may_be_changed_where_that_makes_sense(stopped, capsys):
    changes = ("--factor", 0.03, "--warmup", 50, "--checkpoint-interval", 1, "--keep-checkpoints", 1, "--force")
    with stopping_after(5):
        status, out, _ = run(capsys, "train", "--resume", stopped, *changes)
    assert status == 130
    old, new = (factor * 64**-0.5 * 4 * warmup**-1.5 for factor, warmup in ((0.3, 100), (0.03, 50)))
    assert f"from step 4 on, the learning rate is that of the new options: {new:.6g} instead of {old:.6g}\n" in out
    (saved,) = (stopped / "checkpoints").iterdir()
    run_saved = read_run(saved)
    assert run_saved.about["recipe"] == "copy"
    options = run_saved.about["options"]
    assert (options["factor"], options["warmup"], options["keep_checkpoints"]) == (0.03, 50, 1)
    assert (options["steps"], options["batch_size"], options["dropout"]) == (6, 4, 0.1)


@pytest.mark.parametrize("option", ["--overwrite", "--force", "--detect-anomaly"])
def test_options_for_one_call_do_not_come_back_when_the_run_is_resumed(option, folders, capsys, tmp_path):
    with stopping_after(3):
        assert run(capsys, "train", *TASK, *folders, option)[0] == 130
    folder = tmp_path / "runs" / "copy"
    with stopping_after(4):
        assert run(capsys, "train", "--resume", folder)[0] == 130
    names = sorted(path.name for path in (folder / "checkpoints").iterdir())
    assert names == ["step-00000003.safetensors", "step-00000004.safetensors"]
    options = read_run(find_checkpoint(folder)).about["options"]
    assert (options["overwrite"], options["force"], options["detect_anomaly"]) == (False, False, False)


@pytest.mark.parametrize("steps", [3, 4, 8])
def test_run_that_is_resumed_with_other_steps_has_the_bits_of_a_run_of_so_many_steps(steps, stopped, capsys, tmp_path):
    assert run(capsys, "train", "--resume", stopped, "--steps", steps)[0] == 0
    assert run(capsys, "train", *TASK, "--steps", steps, "--runs", tmp_path / "other")[0] == 0
    resumed, whole = (
        read_safetensors(folder / "model.safetensors")[0] for folder in (stopped, tmp_path / "other" / "copy")
    )
    assert same_weights(resumed, whole)
    assert load_checkpoint(stopped / "model.safetensors")[1]["steps"] == steps


def test_fewer_steps_than_were_taken_are_refused(stopped, capsys):
    outcome = run(capsys, "train", "--resume", stopped, "--steps", 2)
    assert_refused(outcome, "--steps must be at least 3, the steps that were taken, got 2")


@pytest.fixture
def text(tmp_path, monkeypatch, capsys):
    """A run on a text in the current folder that was stopped after its third step of ten -> the file."""
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "my.txt"
    file.write_text(TEXT, encoding="utf8")
    with stopping_after(3):
        outcome = run(capsys, "train", "shakespeare", "--text", "my.txt", "--steps", 10, "--warmup", 2, *SMALL)
        assert outcome.status == 130
    return file


def test_another_number_of_steps_changes_a_cosine_schedule_and_that_is_said(text, capsys):
    status, out, _ = run(capsys, "train", "--resume", "runs/text", "--steps", 20, "--eval-interval", 7)
    assert status == 0
    old, new = (0.001 * (1 + math.cos(math.pi * 2 / (steps - 2))) for steps in (10, 20))
    assert f"from step 4 on, the learning rate is that of the new options: {new:.6g} instead of {old:.6g}\n" in out
    assert "not the same as a run started with --steps 20: it would have had other learning rates until now\n" in out
    assert [line for line in out.splitlines() if "bits per character" in line and "step" in line] != []
    assert "step 7: " in out
    assert "step 8: " not in out


def test_resumed_run_refuses_a_text_with_another_content(text, capsys):
    text.write_text(TEXT + "more", encoding="utf8")
    outcome = run(capsys, "train", "--resume", "runs/text")
    old, new = (hashlib.sha256(each.encode()).hexdigest()[:12] for each in (TEXT, TEXT + "more"))
    said = (
        f"this run was started with {text} (SHA-256 {old}...), and the content of {text} (SHA-256 {new}...) is another"
    )
    assert_refused(outcome, said)
    other = text.with_name("other.txt")
    other.write_text(TEXT.replace("9", "x"), encoding="utf8")
    outcome = run(capsys, "train", "--resume", "runs/text", "--text", "other.txt")
    assert_refused(outcome, f"started with {text} (SHA-256 ", f"and the content of {other} (SHA-256 ")


def test_resumed_run_finds_its_text_from_another_folder_and_in_another_place(text, capsys, tmp_path, monkeypatch):
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    with stopping_after(5):
        assert run(capsys, "train", "--resume", "../runs/text").status == 130
    text.rename("moved.txt")
    refused = run(capsys, "train", "--resume", "../runs/text")
    assert_refused(refused, f"there is no file {text}: if the text was moved, say where it is with --text")
    with stopping_after(7):
        assert run(capsys, "train", "--resume", "../runs/text", "--text", "moved.txt").status == 130
    assert run(capsys, "train", "--resume", "../runs/text").status == 0, "the new place is known from now on"


def test_resumed_run_has_as_many_threads_as_before_whatever_the_environment_says(text, capsys, tmp_path, monkeypatch):
    wide = ("train", "masked", "--text", "my.txt", "--length", 64, "--num-layers", 1, "--steps", 3, "--dropout", 0.1)
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    with stopping_after(1):
        assert run(capsys, *wide, "--name", "wide").status == 130
    assert run(capsys, *wide, "--name", "whole").status == 0
    for variable in THREAD_VARIABLES:
        monkeypatch.delenv(variable, raising=False)
    with limit_threads(3):  # as in a process that was started without the variable
        status, out, _ = run(capsys, "train", "--resume", "runs/wide")
    assert status == 0
    assert "bit-identical" not in out
    resumed, whole = (read_safetensors(tmp_path / "runs" / name / "model.safetensors")[0] for name in ("wide", "whole"))
    assert same_weights(resumed, whole)


def test_another_number_of_threads_is_used_and_said_to_change_the_last_bits(stopped, capsys):
    with stopping_after(4):
        status, out, _ = run(capsys, "train", "--resume", stopped, "--threads", 2)
    assert status == 130
    assert "--threads 2 instead of 1: the results are not bit-identical to those of an uninterrupted run\n" in out
    assert read_run(find_checkpoint(stopped)).num_threads == 2
    status, out, _ = run(capsys, "train", "--resume", stopped)
    assert status == 0
    assert "bit-identical" not in out


def test_run_of_an_earlier_version_is_resumed_to_the_weights_of_an_uninterrupted_one(tmp_path, monkeypatch, capsys):
    """The file is from before recipes had one file for several processes; it was saved after step 3 of 6."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my.txt").write_text(TEXT, encoding="utf8")
    saved = Path("runs/old/checkpoints/step-00000003.safetensors")
    saved.parent.mkdir(parents=True)
    shutil.copy(Path(__file__).with_name("interrupted_run.safetensors"), saved)
    assert run(capsys, "train", "--resume", "runs/old", "--text", "my.txt").status == 0
    choices = ("--tokenizer", "characters", "--dropout", 0)  # there were no others
    assert run(capsys, "train", "shakespeare", "--text", "my.txt", "--steps", 6, *SMALL, *choices).status == 0
    resumed, whole = (read_safetensors(Path("runs") / name / "model.safetensors")[0] for name in ("old", "text"))
    assert resumed.keys() == whole.keys()
    for name, weights in whole.items():
        np.testing.assert_allclose(resumed[name], weights, rtol=0, atol=1e-6)


@pytest.mark.exhaustive
def test_run_that_is_killed_again_and_again_ends_with_the_same_bits(tmp_path):
    (whole,) = kill_again_and_again(tmp_path, 0, np.random.default_rng(0))[2]
    kills, _, endings = kill_again_and_again(tmp_path, 12, np.random.default_rng(1))
    assert kills == 12
    assert all(same_weights(whole, weights) for weights in endings)

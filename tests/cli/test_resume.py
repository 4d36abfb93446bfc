"""A run that is stopped, or killed, is resumed from the command line, and nothing of it is lost unasked."""

import contextlib
import signal

import numpy as np
import pytest

from minitransformer.files import read_safetensors
from minitransformer.recipes.resume import options_to_resume, read_saved_run
from minitransformer.training import read_run
from minitransformer.training.run import TrainingRun
from tests.cli.run import assert_refused, run
from tests.kills import kill_again_and_again, same_weights

TASK = ("copy", "--steps", 6, "--batch-size", 4, "--dropout", 0.1)


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
    assert names == ["attention.png", "log.csv", "loss.png", "model.safetensors"]
    assert run(capsys, "train", *TASK, "--runs", tmp_path / "other")[0] == 0
    folders = stopped, tmp_path / "other" / "copy"
    resumed, whole = (read_safetensors(folder / "model.safetensors")[0] for folder in folders)
    assert same_weights(resumed, whole)
    assert folders[0].joinpath("log.csv").read_bytes() == folders[1].joinpath("log.csv").read_bytes()


def test_unfinished_run_is_not_deleted_unasked(stopped, folders, capsys):
    assert_refused(run(capsys, "train", *TASK, *folders), f"{stopped} holds an unfinished run", "--resume", "--fresh")
    assert run(capsys, "train", *TASK, *folders, "--fresh")[0] == 0
    assert not (stopped / "checkpoints").exists()


def test_what_cannot_be_resumed_is_said(stopped, capsys, tmp_path):
    outcome = run(capsys, "train", "--resume", stopped, "copy")
    assert_refused(outcome, "give a task, such as `train reverse`, or a run to continue")
    assert_refused(run(capsys, "train", "--resume", tmp_path / "nowhere"), "there is no file")
    assert_refused(run(capsys, "train"), "give a task, such as `train reverse`, or a run to continue")
    (stopped / "checkpoints" / "step-00000003.safetensors").write_bytes(b"nonsense")
    assert_refused(run(capsys, "train", "--resume", stopped), "step-00000003.safetensors")


@pytest.mark.parametrize(
    "option", ["--d-model=9", "--steps=9", "--dropout=0.3", "--norm=pre", "--fresh", "--runs=a", "--seed=3", "--mine"]
)
def test_a_resumed_run_keeps_its_sizes_and_its_data(option, stopped, capsys):
    outcome = run(capsys, "train", "--resume", stopped, option)
    name = option.partition("=")[0]
    assert_refused(outcome, f"minitransformer train: {name} cannot be changed when a run is resumed\n")
    assert_refused(run(capsys, "train", "--resume", stopped, *option.split("=")), f"{name} cannot be changed")


def test_an_option_of_another_task_is_refused_for_a_resumed_run(stopped, capsys):
    outcome = run(capsys, "train", "--resume", stopped, "--peak", 0.1)
    assert_refused(outcome, "copy has no option --peak; tasks with this option: shakespeare, masked\n")


def test_options_may_be_changed_where_that_makes_sense(stopped, capsys):
    changes = ("--factor", 0.03, "--warmup", 50, "--checkpoint-interval", 1, "--keep-checkpoints", 1, "--force")
    with stopping_after(5):
        assert run(capsys, "train", "--resume", stopped, *changes)[0] == 130
    (saved,) = (stopped / "checkpoints").iterdir()
    run_saved = read_run(saved)
    assert run_saved.about["recipe"] == "copy"
    options = run_saved.about["options"]
    assert (options["factor"], options["warmup"], options["keep_checkpoints"]) == (0.03, 50, 1)
    assert (options["steps"], options["batch_size"], options["dropout"]) == (6, 4, 0.1)


@pytest.mark.parametrize("option", ["--fresh", "--force", "--detect-anomaly"])
def test_options_for_one_call_do_not_come_back_when_the_run_is_resumed(option, folders, capsys, tmp_path):
    with stopping_after(3):
        assert run(capsys, "train", *TASK, *folders, option)[0] == 130
    folder = tmp_path / "runs" / "copy"
    _, options = options_to_resume(*read_saved_run(folder))
    assert (options.fresh, options.force, options.detect_anomaly) == (False, False, False)
    with stopping_after(4):
        assert run(capsys, "train", "--resume", folder)[0] == 130
    names = sorted(path.name for path in (folder / "checkpoints").iterdir())
    assert names == ["step-00000003.safetensors", "step-00000004.safetensors"]


@pytest.mark.parametrize("option", ["--checkpoint-interval", "--keep-checkpoints"])
def test_no_checkpoints_at_all_are_refused(option, folders, capsys):
    assert_refused(run(capsys, "train", *TASK, *folders, option, 0), f"{option} must be at least 1, got 0")


@pytest.mark.parametrize("count", [1, pytest.param(12, marks=pytest.mark.exhaustive)])
def test_run_that_is_killed_again_and_again_ends_with_the_same_bits(count, tmp_path):
    (whole,) = kill_again_and_again(tmp_path, 0, np.random.default_rng(0))[2]
    kills, _, endings = kill_again_and_again(tmp_path, count, np.random.default_rng(1))
    assert kills == count
    assert all(same_weights(whole, weights) for weights in endings)

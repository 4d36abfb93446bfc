"""`minitransformer train` stops where numbers go wrong: what it says, what it leaves, and that its advice works."""

import re
import shlex
from pathlib import Path

import numpy as np
import pytest

import minitransformer
from minitransformer.system.files import read_safetensors
from minitransformer.training.run import TrainingRun
from tests.cli.run import run
from tests.kills import same_weights

TASK = ("copy", "--steps", 8, "--cooldown", 0, "--batch-size", 4, "--dropout", 0.1, "--name", "copy")
TASK += ("--checkpoint-interval", 3)
WEIGHT = "decoder.layers.1.feed_forward.sublayer.expand"
REPOSITORY = Path(minitransformer.__file__).parents[1]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """The current folder, which is empty."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("minitransformer.recipes.toy.TESTED", 60)
    return tmp_path


@pytest.fixture
def spoilt(monkeypatch):
    """Just before step 5 a weight becomes nan; call this to let it be."""
    log = TrainingRun.log

    def log_and_spoil(self, *numbers):
        log(self, *numbers)
        if self.step == 4:
            self.model.decoder.layers[1].feed_forward.sublayer.expand.W.data[0, 3] = np.nan

    monkeypatch.setattr(TrainingRun, "log", log_and_spoil)
    return lambda: monkeypatch.setattr(TrainingRun, "log", log)


def assert_stopped(outcome, *parts):
    """Status 1, a message on stderr that has all `parts`, nothing of a traceback or a warning."""
    assert outcome.status == 1
    assert outcome.err.startswith("minitransformer train: step ")
    assert "Traceback" not in outcome.err
    assert "Warning" not in outcome.err
    for part in parts:
        assert part in outcome.err


def advised(err):
    """The arguments of the command that resumes with a smaller learning rate."""
    (command,) = re.findall(r"resume with a smaller learning rate: minitransformer (.*)\n", err)
    return shlex.split(command)


def test_training_that_goes_wrong_says_where_and_leaves_its_last_good_checkpoint(spoilt, capsys, folder):
    outcome = run(capsys, "train", *TASK)
    kept = Path("runs/copy/checkpoints/step-00000003.safetensors")
    assert_stopped(
        outcome,
        "step 5: the loss is nan; the weights are as they were before this step\n",
        f"first not finite     the weight {WEIGHT}.W: 1 of 16,384 are nan\n",
        f"the last checkpoint is {kept}\n",
        "minitransformer train --resume runs/copy --factor 0.04\n",
    )
    assert [path.name for path in kept.parent.iterdir()] == [kept.name]
    assert all(np.isfinite(array).all() for array in read_safetensors(folder / kept)[0].values())
    assert not (folder / "runs/copy/model.safetensors").exists()


@pytest.mark.exhaustive
def test_resumed_training_ends_with_the_bits_of_one_that_never_went_wrong(spoilt, capsys):
    run(capsys, "train", *TASK)
    spoilt()
    assert run(capsys, "train", "--resume", "runs/copy")[0] == 0
    assert run(capsys, "train", *TASK, "--runs", "other")[0] == 0
    resumed, whole = (read_safetensors(Path(name) / "copy" / "model.safetensors")[0] for name in ("runs", "other"))
    assert same_weights(resumed, whole)


@pytest.mark.exhaustive
def test_the_advised_command_resumes_with_the_smaller_learning_rate(spoilt, capsys, monkeypatch):
    err = run(capsys, "train", *TASK).err
    spoilt()
    rates, log = {}, TrainingRun.log

    def log_and_record(self, *numbers):
        log(self, *numbers)
        rates[self.step] = self.history.learning_rates[-1]

    monkeypatch.setattr(TrainingRun, "log", log_and_record)
    assert run(capsys, *advised(err))[0] == 0
    assert sorted(rates) == [4, 5, 6, 7, 8]
    for step, rate in rates.items():
        assert rate == pytest.approx(0.04 * 64**-0.5 * step * 100**-1.5, rel=1e-12)


@pytest.mark.parametrize("detect", [(), pytest.param(("--detect-anomaly",), marks=pytest.mark.exhaustive)])
def test_operation_that_overflowed_is_named_with_its_file_and_line(detect, capsys):
    outcome = run(capsys, "train", *TASK, "--factor", 1e30, *detect)
    assert_stopped(
        outcome,
        "(Linear)",
        "an overflow: the largest float32 is 3.4e+38",
        "there is no checkpoint yet: start again with a smaller learning rate, such as --factor 0.4\n",
    )
    assert [path.name for path in Path("runs").rglob("*.*")] == ["config.json"]
    (found,) = re.findall(r"operation +overflow in (\S+), line (\d+): (.*)\n", outcome.err)
    path, line, text = found
    assert path == "minitransformer/functional/linear.py"
    assert (REPOSITORY / path).read_text("utf-8").splitlines()[int(line) - 1].strip() == text
    assert "rows @ W" in text


@pytest.mark.exhaustive
def test_detecting_stops_at_the_step_and_says_so(spoilt, capsys):
    assert_stopped(
        run(capsys, "train", *TASK, "--detect-anomaly"),
        "step 5: a number is not finite; the weights are as they were before this step\n",
        f"the weight {WEIGHT}.W: 1 of 16,384 are nan\n",
    )


@pytest.mark.exhaustive
def test_healthy_training_has_the_same_bits_with_detection(capsys):
    assert run(capsys, "train", *TASK, "--detect-anomaly", "--runs", "detected")[0] == 0
    assert run(capsys, "train", *TASK)[0] == 0
    detected, plain = (read_safetensors(Path(name) / "copy" / "model.safetensors")[0] for name in ("detected", "runs"))
    assert same_weights(detected, plain)


@pytest.mark.exhaustive
def test_text_is_told_of_its_own_learning_rate(capsys, folder, monkeypatch):
    (folder / "a.txt").write_text("all that begins well may end well, " * 60, "utf-8")
    sizes = ("--length", 16, "--d-model", 16, "--num-layers", 1, "--batch-size", 2, "--steps", 4)
    outcome = run(capsys, "train", "shakespeare", "--text", "a.txt", *sizes, "--peak", 1e35, "--warmup", 1)
    assert_stopped(outcome, "such as --peak 0.002\n")

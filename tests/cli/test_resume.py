"""A run that is stopped, or killed, is resumed from the command line; options that cannot change are refused.

Each test resumes a copy, so that a run whose folder was copied or moved is resumed too.
"""

import dataclasses
import hashlib
import shutil
from pathlib import Path

import numpy as np
import pytest

from minitransformer.recipes import RECIPES
from minitransformer.recipes.options import option_name
from minitransformer.recipes.run import find_checkpoint
from minitransformer.system.files import read_safetensors
from minitransformer.system.process import THREAD_VARIABLES, limit_threads
from minitransformer.training import load_checkpoint, read_run
from tests.cli.run import COPY, assert_refused, run, stopping_after
from tests.kills import kill_again_and_again, same_weights

TEXT = "".join(f"{i} times {i} is {i * i}.\n" for i in range(400))
SMALL = ("--length", 16, "--d-model", 16, "--num-layers", 1, "--batch-size", 4, "--name", "text")
FIXED = [  # an option of any task, with a value, that a resumed run cannot change
    f"{option_name(field.name)}={getattr(recipe.defaults, field.name)}".removesuffix("=False").replace("None", "1")
    for recipe in RECIPES.values()
    for field in dataclasses.fields(recipe.defaults)
    if not field.metadata["resumable"]
]


@pytest.fixture
def stopped(copy_of):
    """A run that was stopped after its third step of six -> its folder."""
    return copy_of("stopped")


@pytest.fixture
def finished(copy_of):
    """A run that has taken all of its six steps -> its folder."""
    return copy_of("finished")


def weights(folder):
    """The weights of a finished model."""
    return read_safetensors(folder / "model.safetensors")[0]


def assert_same_runs(resumed, whole):
    """Both folders have the same weights to the bit, the same log, and files of the same names."""
    assert same_weights(weights(resumed), weights(whole))
    assert (resumed / "log.csv").read_bytes() == (whole / "log.csv").read_bytes()
    assert sorted(file.name for file in resumed.iterdir()) == sorted(file.name for file in whole.iterdir())


def test_stopped_run_is_resumed_with_the_same_bits(originals):
    assert_same_runs(originals / "finished/copy", originals / "whole/copy")


@pytest.mark.parametrize(
    "path", ["checkpoints", pytest.param("checkpoints/step-00000003.safetensors", marks=pytest.mark.exhaustive)]
)
def test_a_stopped_run_is_found_by_its_checkpoints_too_and_goes_on_after_their_step(path, stopped, capsys):
    status, out, _ = run(capsys, "train", "--resume", stopped / path, "--steps", 4)
    assert status == 0
    assert "resuming copy after step 3" in out
    log = (stopped / "log.csv").read_text("utf8").splitlines()
    assert [line.partition(",")[0] for line in log] == ["step", "1", "2", "3", "4"]


@pytest.mark.parametrize("path", ["", pytest.param("checkpoint.safetensors", marks=pytest.mark.exhaustive)])
def test_finished_run_is_continued_with_the_bits_of_a_run_of_so_many_steps(path, finished, originals, capsys):
    status, out, _ = run(capsys, "train", "--resume", finished / path, "--steps", 9)
    assert status == 0
    assert "resuming copy after step 6\nfrom now on --steps 9 instead of 6\n" in out
    assert_same_runs(finished, originals / "longer/copy")
    assert read_run(find_checkpoint(finished)).step == 9


@pytest.mark.exhaustive
@pytest.mark.parametrize("steps", [3, 8])
def test_run_that_is_resumed_with_other_steps_has_the_bits_of_a_run_of_so_many_steps(steps, stopped, capsys, tmp_path):
    assert run(capsys, "train", "--resume", stopped, "--steps", steps)[0] == 0
    assert run(capsys, "train", *COPY, "--steps", steps, "--runs", tmp_path / "other")[0] == 0
    assert same_weights(weights(stopped), weights(tmp_path / "other" / "copy"))
    assert load_checkpoint(stopped / "model.safetensors")[1]["steps"] == steps


@pytest.mark.exhaustive
def test_a_run_with_muon_is_resumed_with_the_same_bits(originals, capsys, tmp_path):
    with stopping_after(3):
        assert run(capsys, "train", *COPY, "--runs", tmp_path / "runs", "--optimizer", "muon").status == 130
    assert run(capsys, "train", "--resume", tmp_path / "runs" / "copy").status == 0
    assert run(capsys, "train", *COPY, "--runs", tmp_path / "other", "--optimizer", "muon").status == 0
    resumed, whole = (weights(tmp_path / folder / "copy") for folder in ("runs", "other"))
    assert same_weights(resumed, whole)
    assert not same_weights(resumed, weights(originals / "whole/copy"))


@pytest.mark.exhaustive
def test_continued_run_keeps_its_finished_model_until_the_end_and_can_be_interrupted(finished, originals, capsys):
    before = weights(finished)
    with stopping_after(8):
        status, _, err = run(capsys, "train", "--resume", finished, "--steps", 9)
    assert status == 130
    assert f"resume with: minitransformer train --resume {finished}\n" in err
    assert same_weights(weights(finished), before)
    assert read_run(finished / "checkpoint.safetensors").step == 6
    assert run(capsys, "train", "--resume", finished).status == 0
    assert same_weights(weights(finished), weights(originals / "longer/copy"))


def test_finished_run_without_more_steps_says_how_to_go_on(finished, capsys):
    before = weights(finished)
    said = f"the run in {finished} is finished after 6 steps: to train it for longer, give more than these, with "
    for words in ((), ("--steps", 6), ("--steps", 2)):
        outcome = run(capsys, "train", "--resume", finished, *words)
        assert_refused(outcome, f"{said}minitransformer train --resume {finished} --steps N")
    assert same_weights(weights(finished), before)


@pytest.mark.exhaustive
def test_damaged_checkpoint_of_a_continued_run_leads_back_to_the_finished_one(finished, capsys):
    with stopping_after(7):
        assert run(capsys, "train", "--resume", finished, "--steps", 9).status == 130
    find_checkpoint(finished).write_bytes(b"nonsense")
    kept = finished / "checkpoint.safetensors"
    outcome = run(capsys, "train", "--resume", finished)
    assert_refused(outcome, f"resume with: minitransformer train --resume {kept} --steps N")
    assert run(capsys, "train", "--resume", kept, "--steps", 9).status == 0


def test_options_that_a_resumed_run_cannot_change_are_refused_by_name(stopped, capsys):
    before = find_checkpoint(stopped).read_bytes()
    assert len(set(FIXED)) >= 15
    for words in ([FIXED[0]], *(option.split("=") for option in dict.fromkeys(FIXED))):
        outcome = run(capsys, "train", "--resume", stopped, *words)
        name = words[0].partition("=")[0]
        refused = f"{name} must follow a task, and cannot be changed when a run is resumed\n"
        if not hasattr(RECIPES["copy"].defaults, name.removeprefix("--").replace("-", "_")):
            refused = f"copy has no option {name}; tasks with this option: "
        assert_refused(outcome, f"train: {refused}")
    tasks = "text, shakespeare, masked, classify, digits, denoise, translation"
    outcome = run(capsys, "train", "--resume", stopped, "--peak", 0.1)
    assert_refused(outcome, f"copy has no option --peak; tasks with this option: {tasks}\n")
    outcome = run(capsys, "train", "--resume", stopped, "--steps", 2)
    assert_refused(outcome, "--steps must be at least 3, the steps that were taken, got 2")
    assert find_checkpoint(stopped).read_bytes() == before


def test_options_may_be_changed_where_that_makes_sense_and_the_end_says_how_to_go_on(stopped, capsys):
    changes = ("--factor", 0.03, "--warmup", 50, "--checkpoint-interval", 1, "--keep-checkpoints", 1, "--force")
    with stopping_after(5):
        status, out, err = run(capsys, "train", "--resume", stopped, *changes)
    assert status == 130
    assert f"stopped after step 5, saved {stopped}/checkpoints/step-00000005.safetensors" in err
    assert f"resume with: minitransformer train --resume {stopped}\n" in err
    assert "from now on --factor 0.03 instead of 0.4\n" in out
    assert "from now on --warmup 50 instead of 100\n" in out
    (saved,) = (stopped / "checkpoints").iterdir()
    run_saved = read_run(saved)
    assert run_saved.about["recipe"] == "copy"
    options = run_saved.about["options"]
    assert (options["factor"], options["warmup"], options["keep_checkpoints"]) == (0.03, 50, 1)
    assert (options["steps"], options["batch_size"], options["dropout"]) == (6, 4, 0.1)


def test_options_for_one_call_do_not_come_back_when_the_run_is_resumed(capsys, tmp_path):
    with stopping_after(1):
        for_one_call = ("--overwrite", "--force", "--detect-anomaly")
        assert run(capsys, "train", *COPY, "--runs", tmp_path, *for_one_call).status == 130
    with stopping_after(2):
        assert run(capsys, "train", "--resume", tmp_path / "copy").status == 130
    names = sorted(path.name for path in (tmp_path / "copy/checkpoints").iterdir())
    assert names == ["step-00000001.safetensors", "step-00000002.safetensors"]
    options = read_run(find_checkpoint(tmp_path / "copy")).about["options"]
    assert (options["overwrite"], options["force"], options["detect_anomaly"]) == (False, False, False)


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


@pytest.mark.exhaustive
def test_another_number_of_steps_and_of_evaluations_is_used_and_said(text, capsys):
    status, out, _ = run(capsys, "train", "--resume", "runs/text", "--steps", 20, "--eval-interval", 7)
    assert status == 0
    assert "from now on --steps 20 instead of 10\n" in out
    assert "step 7: " in out
    assert "step 8: " not in out


def test_resumed_run_refuses_another_text_and_finds_its_own_in_another_place(text, capsys, tmp_path, monkeypatch):
    text.write_text(TEXT + "more", encoding="utf8")
    outcome = run(capsys, "train", "--resume", "runs/text")
    old, new = (hashlib.sha256(each.encode()).hexdigest()[:12] for each in (TEXT, TEXT + "more"))
    content = f"the content of {text} (SHA-256 {new}...) is another"
    assert_refused(outcome, f"this run was started with {text} (SHA-256 {old}...), and {content}")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    text.unlink()
    refused = run(capsys, "train", "--resume", "../runs/text")
    assert_refused(refused, f"there is no file {text}: if the text was moved, say where it is with --text")
    Path("moved.txt").write_text(TEXT, encoding="utf8")
    with stopping_after(4):
        assert run(capsys, "train", "--resume", "../runs/text", "--text", "moved.txt").status == 130
    with stopping_after(5):
        assert run(capsys, "train", "--resume", "../runs/text").status == 130, "the new place is known from now on"


@pytest.mark.exhaustive
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
    assert "from now on" not in out
    assert same_weights(weights(tmp_path / "runs/wide"), weights(tmp_path / "runs/whole"))


@pytest.mark.exhaustive
def test_another_number_of_threads_is_used_and_said(stopped, capsys):
    with stopping_after(4):
        status, out, _ = run(capsys, "train", "--resume", stopped, "--threads", 2)
    assert status == 130
    assert "from now on --threads 2 instead of 1\n" in out
    assert read_run(find_checkpoint(stopped)).num_threads == 2
    status, out, _ = run(capsys, "train", "--resume", stopped)
    assert status == 0
    assert "from now on" not in out


@pytest.mark.exhaustive
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
    resumed, whole = weights(Path("runs/old")), weights(Path("runs/text"))
    assert resumed.keys() == whole.keys()
    for name, array in whole.items():
        np.testing.assert_allclose(resumed[name], array, rtol=0, atol=1e-6)


@pytest.mark.weekly
def test_run_that_is_killed_again_and_again_ends_with_the_same_bits(tmp_path):
    (whole,) = kill_again_and_again(tmp_path, 0, np.random.default_rng(0))[2]
    kills, _, endings = kill_again_and_again(tmp_path, 12, np.random.default_rng(1))
    assert kills == 12
    assert all(same_weights(whole, ending) for ending in endings)

"""A damaged checkpoint, or one of another run, is refused, and the newest sound one is named with its command."""

import dataclasses
import json
import shutil
from pathlib import Path

import pytest

from minitransformer.recipes import get_recipe
from minitransformer.recipes.run import load_same_data
from minitransformer.training import read_run, save_checkpoint
from minitransformer.training.saving.checkpoint import load_with_arrays
from minitransformer.training.saving.checkpointer import SavedRun
from tests.cli.run import COPY, assert_refused, run, stopping_after


@pytest.fixture
def three(copy_of):
    """A run with checkpoints after steps 2, 3 and 4 of six -> its folder."""
    return copy_of("three")


def checkpoint(folder, step):
    return folder / "checkpoints" / f"step-{step:08d}.safetensors"


def damage(path, how):
    """A bit is another, the end is missing, or all is missing."""
    content = bytearray(path.read_bytes())
    content[-5] ^= 1
    path.write_bytes({"a bit": content, "the end": content[:-100], "everything": b""}[how])


@pytest.mark.parametrize(
    ("named", "how"),
    [
        ("", "a bit"),
        pytest.param("checkpoints", "the end", marks=pytest.mark.exhaustive),
        pytest.param("checkpoints/step-00000004.safetensors", "everything", marks=pytest.mark.exhaustive),
    ],
)
def test_instead_of_a_damaged_checkpoint_the_newest_sound_one_is_named_and_resumed(named, how, three, capsys):
    damage(checkpoint(three, 4), how)
    outcome = run(capsys, "train", "--resume", three / named)
    command = f"minitransformer train --resume {checkpoint(three, 3)}"
    said = f"the newest sound checkpoint is {checkpoint(three, 3)}, resume with: {command}\n"
    assert_refused(outcome, f"train: {checkpoint(three, 4)} is not a ", said)
    damage(checkpoint(three, 3), how)
    command = f"minitransformer train --resume {checkpoint(three, 2)}"
    outcome = run(capsys, "train", "--resume", three)
    assert_refused(outcome, f"train: {checkpoint(three, 4)} is not a ", f"resume with: {command}\n")
    with stopping_after(3):
        assert run(capsys, *command.split()[1:]).status == 130
    assert sorted((three / "checkpoints").iterdir()) == [checkpoint(three, 2), checkpoint(three, 3)]
    assert run(capsys, "train", "--resume", three).status == 0


def test_where_an_older_checkpoint_is_damaged_the_newest_needs_no_name(three, capsys):
    damage(checkpoint(three, 2), "a bit")
    outcome = run(capsys, "train", "--resume", checkpoint(three, 2))
    assert_refused(
        outcome, f"checkpoint is {checkpoint(three, 4)}, resume with: minitransformer train --resume {three}\n"
    )


FORGED = [  # where in a checkpoint, the value that no training has written, and what is said
    ("training", {"step": 10**30}, f"step must be at most {2**53}, got {10**30}"),
    ("training", {"step": 3}, "losses must be of shape (3,), got (4,)"),
    ("training", {"tokens": -1}, "tokens must be at least 0, got -1"),
    ("training", {"adam_steps": 2.5}, "adam_steps must be a whole number, got 2.5"),
    ("training", {"seconds": float("nan")}, "seconds must be at least 0 and finite, got nan"),
    ("training", {"processes": 0}, "processes must be at least 1, got 0"),
    ("training", {"snapshot_steps": 10**30}, "snapshot_steps must be a list, got 1000"),
    ("about", {"evaluations": 10**30}, "among its evaluations, which are pairs of a step and a number"),
    ("about", {"evaluations": [[1, "x"]]}, "has [1, 'x'] among its evaluations"),
    ("about", {"evaluations": [[10**30, 1.0]]}, f"has an evaluation after step {10**30}, and took 4 steps"),
]


def test_counts_that_no_training_has_reached_are_damage_too(three, capsys):
    model, metadata, arrays = load_with_arrays(checkpoint(three, 4))
    for field, changes, said in FORGED:
        forged = {**metadata, field: {**metadata[field], **changes}}
        save_checkpoint(checkpoint(three, 4), model, arrays, **forged)
        command = f"resume with: minitransformer train --resume {checkpoint(three, 3)}\n"
        assert_refused(run(capsys, "train", "--resume", three), said, command)


def test_a_run_on_text_without_its_tokenizer_is_refused(tmp_path):
    path, recipe = tmp_path / "my.txt", get_recipe("text")
    path.write_text("a few words " * 40, encoding="utf8")
    options = dataclasses.replace(recipe.defaults, text=str(path), tokenizer="bytes", length=8)
    data = recipe.data(options)
    about = {"data": recipe.source(options, data), **recipe.metadata(data)}
    assert load_same_data(recipe, options, SavedRun(None, ({}, {}), about, path)).sha256 == data.sha256
    del about["tokenizer"]
    with pytest.raises(ValueError, match=r"my\.txt does not hold the tokenizer of its run"):
        load_same_data(recipe, options, SavedRun(None, ({}, {}), about, path))


def test_it_is_said_if_no_checkpoint_is_sound(three, capsys):
    for step in (2, 3, 4):
        damage(checkpoint(three, step), "the end")
    refused = run(capsys, "train", "--resume", three)
    assert_refused(refused, f"{checkpoint(three, 4)} is not a", f"; {three / 'checkpoints'} has no sound checkpoint\n")


def test_checkpoint_that_cannot_be_read_is_treated_like_a_damaged_one(three, capsys, monkeypatch):
    def read(path, model=None):
        if Path(path) == checkpoint(three, 4):
            raise OSError(f"cannot read {path}: Input/output error")
        return read_run(path, model)

    monkeypatch.setattr("minitransformer.recipes.run.read_run", read)
    outcome = run(capsys, "train", "--resume", three)
    assert_refused(outcome, f"{checkpoint(three, 4)}: Input/output error; the newest sound", str(checkpoint(three, 3)))


def test_error_in_a_run_that_was_resumed_from_an_earlier_checkpoint_names_that_one(three, capsys, monkeypatch):
    def full(path, *content, **options):
        raise OSError("No space left on device")

    monkeypatch.setattr("minitransformer.training.saving.checkpointer.save_checkpoint", full)
    outcome = run(capsys, "train", "--resume", checkpoint(three, 2))
    said = f"the newest checkpoint is {checkpoint(three, 2)}, resume with: minitransformer train --resume "
    assert outcome.status == 2
    assert outcome.err == f"minitransformer train: No space left on device; {said}{checkpoint(three, 2)}\n"


def run_id(folder):
    return json.loads((folder / "config.json").read_text("utf8")).get("run")


@pytest.mark.exhaustive
def test_checkpoint_of_another_run_is_refused(three, capsys, tmp_path):
    with stopping_after(2):
        assert run(capsys, "train", *COPY, "--seed", 1, "--runs", tmp_path / "other").status == 130
    other = tmp_path / "other" / "copy"
    shutil.copy(checkpoint(three, 4), checkpoint(other, 4))
    assert run_id(three) != run_id(other)
    refused = (
        f"train: {checkpoint(other, 4)} belongs to another run: its id is {run_id(three)}, and that of the run in "
        f"{other} is {run_id(other)}; to resume it, move it to runs/NAME/checkpoints/ of a new NAME; the newest sound "
        f"checkpoint is {checkpoint(other, 2)}, resume with: minitransformer train --resume {checkpoint(other, 2)}\n"
    )
    for path in (other, checkpoint(other, 4)):
        assert_refused(run(capsys, "train", "--resume", path), refused)
    checkpoint(tmp_path / "new", 4).parent.mkdir(parents=True)
    checkpoint(other, 4).rename(checkpoint(tmp_path / "new", 4))
    assert run(capsys, "train", "--resume", other).status == 0
    assert run(capsys, "train", "--resume", tmp_path / "new").status == 0
    assert run_id(tmp_path / "new") == run_id(three)


@pytest.mark.exhaustive
def test_run_in_the_folder_of_a_finished_model_has_an_id_of_its_own(copy_of, capsys, tmp_path):
    folder = copy_of("finished")
    finished, config = run_id(folder), (folder / "config.json").read_bytes()
    with stopping_after(3):
        assert run(capsys, "train", *COPY, "--runs", tmp_path / "runs", "--overwrite").status == 130
    assert run_id(folder) == read_run(checkpoint(folder, 3)).about["run"] != finished
    shutil.copytree(folder, tmp_path / "runs" / "mixed")
    (tmp_path / "runs" / "mixed" / "config.json").write_bytes(config)
    refused = run(capsys, "train", "--resume", tmp_path / "runs" / "mixed")
    assert_refused(refused, "belongs to another run", "has no sound checkpoint")
    assert run(capsys, "train", "--resume", folder).status == 0


@pytest.mark.exhaustive
@pytest.mark.parametrize("config", ['{"recipe": "copy"}', None, "nonsense"])
def test_run_without_an_id_is_resumed(config, three, capsys, monkeypatch):
    """As those of earlier versions; a damaged config.json says nothing."""
    model, metadata, arrays = load_with_arrays(checkpoint(three, 4))
    del metadata["about"]["run"]
    save_checkpoint(checkpoint(three, 4), model, arrays, **metadata)
    if config is None:
        (three / "config.json").unlink()
    else:
        (three / "config.json").write_text(config, encoding="utf8")
    with stopping_after(5):
        assert run(capsys, "train", "--resume", three).status == 130
    assert run(capsys, "train", "--resume", three).status == 0

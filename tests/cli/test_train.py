"""`minitransformer train`: three steps leave a model, a log and two figures."""

import contextlib
import dataclasses
import io
import json
from typing import NamedTuple

import matplotlib.image
import numpy as np
import pytest

from minitransformer import __version__
from minitransformer.cli import main
from minitransformer.config import flat_fields
from minitransformer.data import get_task
from minitransformer.models import Transformer
from minitransformer.recipes import RECIPES
from minitransformer.training import load_checkpoint
from tests.cli.run import run

HELD_OUT = 60


class Trained(NamedTuple):
    """One training that has ended."""

    task: str
    folder: object
    status: int
    out: str
    err: str

    @property
    def run(self):
        """The folder of the run."""
        return self.folder / "runs" / f"{self.task}-seed-5-steps-3"

    @property
    def result(self):
        """The machine-readable last line."""
        return json.loads(self.out.splitlines()[-1])


@pytest.fixture(
    scope="module",
    params=["copy", *(pytest.param(task, marks=pytest.mark.exhaustive) for task in ("addition", "recall"))],
)
def trained(request, tmp_path_factory):
    """`minitransformer train TASK --steps 3` in an empty folder of its own; a smaller test than usual, for speed."""
    folder, out, err = tmp_path_factory.mktemp(request.param), io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setattr("minitransformer.recipes.toy.TESTED", HELD_OUT)
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            status = main(["train", request.param, "--steps", "3", "--seed", "5", "--json"])
    return Trained(request.param, folder, status, out.getvalue(), err.getvalue())


def test_training_shows_no_bar_and_writes_the_model_its_options_its_log_and_two_figures_and_nothing_else(trained):
    assert (trained.status, trained.err) == (0, "")
    files = {path for path in trained.folder.rglob("*") if path.is_file()}
    said = {trained.run / name for name in ("model.safetensors", "loss.png", "attention.png")}
    assert files == said | {trained.run / name for name in ("log.csv", "checkpoint.safetensors", "config.json")}
    _, _, saved = trained.out.partition("\nsaved ")
    assert set(saved.split("{")[0].split()) == {str(path.relative_to(trained.folder)) for path in said}


def test_config_has_all_options_the_model_and_the_versions(trained):
    config = json.loads((trained.run / "config.json").read_text("utf8"))
    defaults = dataclasses.asdict(RECIPES[trained.task].defaults)
    assert config["recipe"] == trained.task
    assert config["options"] == {**defaults, "steps": 3, "seed": 5, "threads": 1, "runs": "runs"}
    model, _ = load_checkpoint(trained.run / "model.safetensors")
    assert config["model"] == {"class": "Transformer", "config": flat_fields(model.config)}
    assert config["versions"]["minitransformer"] == __version__


def test_the_log_has_a_line_for_each_step(trained):
    head, *lines = (trained.run / "log.csv").read_text("utf8").splitlines()
    assert head == "step,loss,grad_norm,learning_rate"
    rows = [[float(number) for number in line.split(",")] for line in lines]
    assert [row[0] for row in rows] == [1, 2, 3]
    assert all(2.0 < loss < 7.0 and norm > 0.0 for _, loss, norm, _ in rows)
    share = getattr(RECIPES[trained.task].defaults, "cooldown", 0)
    falls = [min(1, (3 - step) / (3 * share)) if share else 1 for step in (1, 2, 3)]
    expected, rates = np.array([1, 2, 3]) * falls, np.array([rate for *_, rate in rows])
    np.testing.assert_allclose(rates, rates[0] / expected[0] * expected, rtol=1e-5)  # it warms up, and cools down


def test_the_figures_are_not_blank(trained):
    for kind in ("loss", "attention"):
        image = matplotlib.image.imread(trained.run / f"{kind}.png")
        assert min(image.shape[:2]) > 200
        assert image[..., :3].var() > 1e-3
        assert len(np.unique((image * 255).astype(np.uint8).view(np.uint32))) > 20  # colours: the four channels in one


def test_the_saved_model_is_the_trained_one_with_its_result(trained):
    model, metadata = load_checkpoint(trained.run / "model.safetensors")
    assert isinstance(model, Transformer)
    assert model.config.vocab_size == len(get_task(trained.task).vocabulary)
    assert metadata == trained.result
    start = Transformer(model.config, seed=5)
    for trained_parameter, parameter in zip(model.parameters(), start.parameters(), strict=True):
        # moved, but in three small steps no further than from this seed's initial weights
        assert 0.0 < np.abs(trained_parameter.data - parameter.data).max() < 2e-3


def test_the_closing_table_has_the_result_and_three_examples(trained):
    out, result = trained.out, trained.result
    lines = {line[:26].strip(): line[27:] for line in out.splitlines() if line[26:27] == " "}
    assert lines["exact match on held-out"] == f"{100 * result['exact_match']:.1f} % of {HELD_OUT} sequences"
    assert lines["steps"] == "3"
    assert lines["seconds of training"] == f"{result['seconds']:.1f}"
    assert lines["tokens per second"] == f"{result['tokens_per_second']:,.0f}"
    assert out.count("for example ") == 3
    assert out.count("WRONG") == 3  # after three steps nothing is right


def test_json_has_the_documented_keys_in_the_last_line(trained):
    result = trained.result
    assert set(result) == {"task", "seed", "exact_match", "held_out", "steps", "seconds", "tokens_per_second"}
    assert (result["task"], result["seed"], result["steps"]) == (trained.task, 5, 3)
    assert result["held_out"] == HELD_OUT
    assert 0.0 <= result["exact_match"] <= 1.0
    assert result["tokens_per_second"] * result["seconds"] > 3 * 64  # tokens of three batches of 64 pairs


@pytest.fixture
def empty_folder(tmp_path, monkeypatch):
    """The current folder, which is empty."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("minitransformer.recipes.toy.TESTED", HELD_OUT)
    return tmp_path


def test_the_options_reach_the_model_and_its_folder(capsys, empty_folder):
    options = ["--norm", "pre", "--dropout", "0.25", "--batch-size", "8", "--runs", "r/deep", "--name", "copy"]
    status, _, err = run(capsys, "train", "copy", "--steps", "1", *options)
    assert (status, err) == (0, "")
    model, metadata = load_checkpoint(empty_folder / "r/deep/copy/model.safetensors")
    assert (model.config.norm, model.config.dropout, metadata["steps"]) == ("pre", 0.25, 1)
    assert [path.name for path in empty_folder.iterdir()] == ["r"]

"""`train digits`: a Vision Transformer from the command line, its figures, and what other commands do with it."""

import importlib.util
import json

import numpy as np
import pytest

from minitransformer import plotting
from minitransformer.data.labelled import DigitsTask
from minitransformer.training import load_checkpoint
from tests.cli.run import assert_refused, run
from tests.drawing import faults
from tests.test_readme import block_of

# it is looked for and not imported, which takes each process of the tests two seconds
pytestmark = pytest.mark.skipif(not importlib.util.find_spec("sklearn"), reason="the digits come with scikit-learn")


@pytest.fixture
def shown(monkeypatch, tmp_path):
    """The figures that were saved, in a new current folder."""
    monkeypatch.chdir(tmp_path)
    figures, save = {}, plotting.save_figure
    monkeypatch.setattr(
        plotting, "save_figure", lambda figure, path: figures.update({path.name: figure}) or save(figure, path)
    )
    return figures


@pytest.mark.exhaustive
@pytest.mark.draws
def test_digits_are_learnt_drawn_and_saved_and_other_commands_say_what_they_can_do(capsys, shown):
    arguments = ("--steps", 80, "--peak", 6e-3, "--d-model", 16, "--batch-size", 32, "--threads", 1, "--json")
    status, out, err = run(capsys, "train", "digits", *arguments, "--name", "digits")
    assert (status, err) == (0, "")
    assert "scikit-learn's digits; 1,347 images to learn from, 450 held out (drawn by --seed); " in " ".join(
        out.split()
    )
    result = json.loads(out.splitlines()[-1])
    assert result["accuracy"] > 0.2  # a tenth by chance
    model, _ = load_checkpoint("runs/digits")
    held_out = DigitsTask(0).held_out
    right = (model(held_out.ids)[:, 1:].argmax(axis=1) == held_out.targets - 1).mean()
    assert result["accuracy"] == pytest.approx(right)
    assert set(shown) == {"loss.png", "confusion.png", "attention.png"}
    assert faults(shown["attention.png"]) == []
    titles = [axes.get_title() for axes in shown["attention.png"].axes[:10]]
    assert [title[0] == title[-1] for title in titles] == [True] * 5 + [False] * 5
    for title, axes in zip(titles, shown["attention.png"].axes, strict=False):
        drawn = np.array(axes.images[0].get_array()).ravel()
        assert int(title[0]) in held_out.targets[(held_out.ids == drawn).all(axis=1)] - 1
    names = {}
    exec(block_of("fine-tuning.md", "import minitransformer as mt\nfrom minitransformer.data.labelled"), names)
    assert capsys.readouterr().out.count("read as") == 3
    summary = run(capsys, "summary", "runs/digits").out
    assert "Patches" in summary
    assert f"{model.num_parameters():,} parameters" in summary
    assert_refused(run(capsys, "generate", "runs/digits", "--prompt", "a"), "reads images, not text: see docs/library")
    assert_refused(run(capsys, "evaluate", "runs/digits", "--text", "x"), "is a ViT: evaluate takes GPTs")


@pytest.mark.exhaustive
def test_a_run_of_digits_is_resumed_on_its_own_images_alone(capsys, shown, monkeypatch):
    arguments = ("--steps", 2, "--batch-size", 4, "--threads", 1, "--seed", 3, "--name", "digits")
    assert run(capsys, "train", "digits", *arguments).status == 0
    assert "Patches" in run(capsys, "summary", "runs/digits").out
    assert run(capsys, "train", "--resume", "runs/digits", "--steps", 3).status == 0
    assert load_checkpoint("runs/digits")[1]["steps"] == 3
    monkeypatch.setattr("minitransformer.recipes.classify.DigitsTask", lambda seed: DigitsTask(seed + 1))
    refused = run(capsys, "train", "--resume", "runs/digits", "--steps", 4)
    assert_refused(refused, "this run was started with scikit-learn's digits (SHA-256", "is another")

"""The commands for a model, from its training to its answers, mix no arrays of the host and the device."""

import pytest

from minitransformer.backend import use_backend
from minitransformer.recipes import toy
from tests.cli.run import assert_refused, run
from tests.strict.strict import strict

pytestmark = pytest.mark.exhaustive


@pytest.fixture(autouse=True)
def on_the_stand_in(tmp_path, monkeypatch):
    """Commands run on the stand-in, and write to a temporary folder; a model is tested on 20 sequences."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(toy, "TESTED", 20)
    with use_backend(strict):
        yield


@pytest.mark.parametrize("model", ["transformer", "gpt", "lstm-attention"])
def test_a_model_of_a_toy_task_is_trained_drawn_asked_and_explored(capsys, tmp_path, model):
    training = run(capsys, "train", "reverse", "--model", model, "--steps", 2, "--batch-size", 4, "--name", "gpu")
    assert training.status == 0, training.err
    assert (tmp_path / "runs" / "gpu" / "attention.png").stat().st_size > 10_000
    answer = run(capsys, "generate", "runs/gpu", "--prompt", "abc")
    assert answer.status == 0, answer.err
    if model == "transformer":
        for options in ([], ["runs/gpu", "--word", "abc"]):
            page = run(capsys, "explore", *options, "--write", f"page{len(options)}")
            assert page.status == 0, page.err


def test_benchmarks_of_numpy_are_refused(capsys):
    for name in ("speed", "step-growth", "decoding", "attention-cost"):
        assert_refused(run(capsys, "experiment", name), "--backend must be numpy", "experiment device")

"""`sharpness`: the eigenvalues of trained models, in a table and as JSON."""

import json

import numpy as np
import pytest

from minitransformer.cli import sharpness
from minitransformer.data import get_task
from minitransformer.data.prompted import prompted
from minitransformer.gradcheck.hessian import LossOfWeights, in_float64, largest_eigenpairs
from minitransformer.models import GPT, Seq2Seq, Seq2SeqConfig, Transformer, TransformerConfig, gpt_config
from minitransformer.training import load_checkpoint, save_checkpoint
from tests.cli.run import run

SIZES = {"d_model": 4, "num_heads": 2, "d_ff": 3, "num_layers": 1, "max_len": 32}
ADDITION = len(get_task("addition").vocabulary)


@pytest.fixture
def saved(tmp_path):
    """saved(model, **metadata): the path of a file of the model."""

    def save(model, **metadata):
        path = tmp_path / "runs" / "addition" / "model.safetensors"
        path.parent.mkdir(parents=True, exist_ok=True)
        save_checkpoint(path, model, **metadata)
        return path.parent

    return save


MODELS = {
    "Transformer": lambda: Transformer(TransformerConfig(ADDITION, **SIZES)),
    "GPT": lambda: GPT(gpt_config(ADDITION, **SIZES)),
    "Seq2Seq": lambda: Seq2Seq(Seq2SeqConfig(ADDITION, 4, 3, 1, attention="dot")),
}


@pytest.mark.parametrize(
    "name", ["Transformer", *(pytest.param(name, marks=pytest.mark.exhaustive) for name in ("GPT", "Seq2Seq"))]
)
def test_the_eigenvalues_are_those_of_the_loss_on_held_out_sums(name, saved, capsys):
    model = MODELS[name]()
    folder = saved(model, task="addition")
    result = run(capsys, "sharpness", folder, "--eigenvalues", 2, "--batch-size", 5, "--seed", 4, "--json")
    assert (result.status, result.err) == (0, "")
    numbers = json.loads(result.out.splitlines()[-1])
    batch = get_task("addition").held_out_batch(np.random.default_rng([4, 3]), 5)
    loss = LossOfWeights(in_float64(model), prompted(batch) if isinstance(model, GPT) else batch, 0.1)
    theta = loss.weights
    largest = largest_eigenpairs(lambda v: loss.hessian_product(theta, v), len(theta), 2, seed=1).values
    smallest = -largest_eigenpairs(lambda v: -loss.hessian_product(theta, v), len(theta), seed=1).values[0]
    assert numbers["loss"] == loss.loss(theta)
    assert numbers["weights"] == len(theta)
    assert numbers["gradient_norm"] == pytest.approx(np.linalg.norm(loss.gradient(theta)[1]))
    assert np.allclose(numbers["eigenvalues"], [*largest, smallest], rtol=0, atol=1e-6 * largest[0])
    assert max(numbers["residuals"]) <= 2e-4 * max(largest[0], -smallest)


def test_the_table_says_what_the_eigenvalues_mean(saved, capsys):
    sharp = {"task": "addition", "weights": 1234, "sequences": 5, "label_smoothing": 0.1, "loss": 0.5}
    sharp |= {"gradient_norm": 0.01, "eigenvalues": [4.0, 3.0, -0.5], "residuals": [1e-5] * 3, "products": 70}
    sharpness.report(sharp)
    text = capsys.readouterr().out
    assert "stable along eigenvector 1 with learning rates below 2 / 4 = 0.5." in text
    assert "not at a minimum" in text
    assert "With no learning\nrate is gradient descent stable along its eigenvector" in text
    assert "by 1 + 0.5 lr." in text
    sharpness.report({**sharp, "eigenvalues": [4.0, 3.0, 0.0]})
    text = capsys.readouterr().out
    assert "stable here with learning rates below 2 / 4 = 0.5." in text
    assert "minimum" not in text


def test_the_file_is_not_changed_and_smoothing_can_be_chosen(saved, capsys):
    folder = saved(MODELS["GPT"](), task="addition")
    before = (folder / "model.safetensors").read_bytes()
    losses = [
        json.loads(run(capsys, "sharpness", folder, "--batch-size", 2, "--json", *options).out.splitlines()[-1])["loss"]
        for options in ([], ["--label-smoothing", "0.1"], ["--label-smoothing", "0"])
    ]
    assert losses[0] == losses[1] != losses[2]
    assert (folder / "model.safetensors").read_bytes() == before
    assert load_checkpoint(folder / "model.safetensors")[1] == {"task": "addition"}

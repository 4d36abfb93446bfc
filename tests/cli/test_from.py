"""`train --from`: a run that starts from the weights and the tokenizer of another one."""

import json
import shutil

import numpy as np
import pytest

from minitransformer.models import GPT, gpt_config
from minitransformer.recipes import RECIPES
from minitransformer.recipes.start import Start
from minitransformer.tokenizers import BytePairTokenizer
from minitransformer.training import load_checkpoint
from tests.cli.run import run
from tests.cli.test_huggingface_text import folder  # noqa: F401

OLD = "".join(f"{i} times {i} is {i * i}.\n" for i in range(400))
NEW = "".join(f"{i} plus {i} is {2 * i}: that is even!\n" for i in range(400))
PAIRS = "".join(f"{i} und {i}\t{i} and {i}\n" for i in range(300))
SHORT = ("--steps", 3, "--batch-size", 8, "--warmup", 1, "--threads", 1)
SIZES = ("--length", 16, "--d-model", 16, "--num-layers", 1, "--num-heads", 2, "--positions", "learned")
GRADUAL = ("--peak", 1e-30)  # the weights do not move


@pytest.fixture(autouse=True)
def texts(tmp_path, monkeypatch):
    """Every test runs in a folder with two texts, the second of which has other characters, and pairs."""
    monkeypatch.chdir(tmp_path)
    for name, text in (("old.txt", OLD), ("new.txt", NEW), ("pairs.tsv", PAIRS)):
        (tmp_path / name).write_text(text, encoding="utf8")


def train(capsys, *arguments):
    status, out, err = run(capsys, "train", *arguments, *SHORT)
    assert (status, err) == (0, "")
    return out


@pytest.mark.parametrize(
    ("task", "tokenizer"),
    [
        ("text", "bpe"),
        pytest.param("text", "bytes", marks=pytest.mark.exhaustive),
        pytest.param("masked", "bpe", marks=pytest.mark.exhaustive),
    ],
)
def test_the_weights_the_tokenizer_and_the_sizes_come_along(capsys, task, tokenizer):
    train(capsys, task, "--text", "old.txt", *SIZES, "--tokenizer", tokenizer, "--name", f"{task}-old")
    train(capsys, task, "--text", "new.txt", "--from", f"runs/{task}-old", "--dropout", 0.25, *GRADUAL, "--name", "new")
    (old, before), (new, after) = (load_checkpoint(f"runs/{name}/model.safetensors") for name in (f"{task}-old", "new"))
    assert after["tokenizer"] == before["tokenizer"]
    assert new.config.dropout == 0.25
    assert (new.config.d_model, new.config.num_heads, new.config.positions) == (16, 2, "learned")
    state = new.state_dict()
    for name, array in old.state_dict().items():
        np.testing.assert_allclose(state[name], array, atol=1e-12)


@pytest.mark.exhaustive
def test_pairs_go_on_where_restoring_broken_text_has_stopped(capsys):
    """Masks need no token of their own, so the vocabulary is that of a translation model."""
    sizes = ("--d-model", 16, "--num-layers", 1, "--vocab-size", 280)
    train(capsys, "denoise", "--text", "old.txt", *sizes, "--name", "denoise-old")
    train(capsys, "translation", "--text", "pairs.tsv", "--from", "runs/denoise-old", *GRADUAL, "--name", "new")
    (old, before), (new, after) = (load_checkpoint(f"runs/{name}/model.safetensors") for name in ("denoise-old", "new"))
    assert after["tokenizer"] == before["tokenizer"]
    for name, array in old.state_dict().items():
        np.testing.assert_allclose(new.state_dict()[name], array, atol=1e-12)


@pytest.mark.exhaustive
def test_the_folder_is_named_after_both_and_resumes_without_the_older_run(capsys):
    train(capsys, "text", "--text", "old.txt", *SIZES, "--name", "text-old")
    arguments = ("train", "text", "--text", "new.txt", "--from", "runs/text-old", "--batch-size", 8, "--threads", 1)
    out = run(capsys, *arguments, "--steps", 4, "--warmup", 1).out
    assert "--peak 0.001: " in out
    name = "runs/text-new-from-old-steps-4-warmup-1"
    with open(f"{name}/config.json", encoding="utf8") as file:
        options = json.load(file)["options"]
    assert (options["from_"], options["d_model"], options["peak"]) == ("runs/text-old", 16, 1e-3)
    shutil.rmtree("runs/text-old")
    assert run(capsys, "train", "--resume", name, "--steps", 6).status == 0


@pytest.mark.parametrize(("d_model", "peak"), [(16, 1e-3), (128, 1e-3), (384, 3.3e-4), (768, 1.7e-4)])
def test_wider_models_start_with_a_lower_peak_unless_one_is_given(d_model, peak):
    model = GPT(gpt_config(300, d_model=d_model, num_heads=2, d_ff=8, num_layers=1, max_len=9), seed=None)
    start = Start("old", model, BytePairTokenizer())
    defaults, reasons = start.fitting(RECIPES["text"], {"text": "old.txt"})
    assert defaults.peak == peak
    assert reasons[-1].startswith(f"--peak {peak}: 0.001 up to a d_model of 128, ")
    assert "--peak" not in str(start.fitting(RECIPES["text"], {"text": "old.txt", "peak": 0.1})[1])


@pytest.mark.exhaustive
def test_translation_starts_from_a_translator(capsys):
    sizes = ("--d-model", 16, "--num-layers", 1, "--num-heads", 2)
    train(capsys, "translation", "--text", "pairs.tsv", *sizes, "--name", "old")
    train(capsys, "translation", "--text", "pairs.tsv", "--swap", "--from", "runs/old", *GRADUAL, "--name", "new")
    old, new = (load_checkpoint(f"runs/{name}/model.safetensors")[0].state_dict() for name in ("old", "new"))
    for name, array in old.items():
        np.testing.assert_allclose(new[name], array, atol=1e-12)


@pytest.mark.exhaustive
def test_a_gpt2_of_hugging_face_is_a_start(capsys, folder):  # noqa: F811
    train(capsys, "text", "--text", "new.txt", "--from", folder, "--length", 7, "--name", "new")
    model, metadata = load_checkpoint("runs/new/model.safetensors")
    assert metadata["tokenizer"]["kind"] == "byte_level"
    assert model.config.activation.startswith("gelu")
    assert run(capsys, "train", "--resume", "runs/new", "--steps", 5).status == 0

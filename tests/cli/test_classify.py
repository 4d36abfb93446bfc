"""`train classify`: sentences with labels, from the command line, also with the encoder of a masked model."""

import json

import numpy as np
import pytest

from minitransformer.training import load_checkpoint
from tests.cli.run import assert_refused, run
from tests.test_readme import block_of

LINES = "".join(f"box {i} is late\tpost\nbill {i} is wrong\tmoney\nhello {i}\tother\n" for i in range(40))
SMALL = ("--batch-size", 8, "--warmup", 2, "--threads", 1, "--json")
SIZES = ("--d-model", 16, "--num-layers", 1, "--num-heads", 2, "--length", 12)


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """Every test runs in a folder with labelled sentences and a text."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my.tsv").write_text(LINES, encoding="utf8")
    (tmp_path / "my.txt").write_text(LINES.replace("\t", " is about "), encoding="utf8")
    return tmp_path


def train(capsys, *arguments):
    status, out, err = run(capsys, "train", *arguments, *SMALL)
    assert (status, err) == (0, "")
    return out, json.loads(out.splitlines()[-1])


@pytest.mark.exhaustive
def test_labels_are_learnt_saved_and_the_model_tells_them_of_new_sentences(capsys, folder):
    out, result = train(capsys, "classify", "--text", "my.tsv", *SIZES, "--steps", 60, "--name", "classify-my")
    assert "96 sentences to learn from, 24 held out (20% of each of 3 labels)" in " ".join(out.split())
    assert result["accuracy"] > 0.9
    assert (result["commonest"], result["held_out"]) == (pytest.approx(1 / 3), 24)
    assert "\nmoney                       8 " in out
    saved = folder / "runs/classify-my"
    assert {path.name for path in saved.iterdir()} >= {"model.safetensors", "loss.png", "confusion.png", "log.csv"}
    assert load_checkpoint(saved)[1]["labels"] == ["money", "other", "post"]
    names = {}
    exec(block_of("fine-tuning.md", "import minitransformer as mt\nfrom minitransformer.recipes.classify"), names)
    asked = ["bill 7 is wrong", "box 8 is late"]
    p = names["classify"](names["model"], names["tokenizer"], asked)
    np.testing.assert_array_equal(p.argmax(axis=1), [0, 2])
    assert capsys.readouterr().out.count("%") == 3
    assert run(capsys, "train", "--resume", saved, "--steps", 61).status == 0
    status, out, err = run(capsys, "generate", saved, "--prompt", asked[1], "--top-k", 2, "--json")
    *lines, last = out.splitlines()
    assert (status, err, len(lines)) == (0, "", 2)
    assert lines[0] == f"{p[1, 2]:>6.1%}  post"
    assert json.loads(last)["labels"][0] == {"label": "post", "probability": pytest.approx(p[1, 2])}
    assert_refused(run(capsys, "generate", saved, "--prompt", "a", "--greedy"), "--greedy is for language models")


@pytest.mark.exhaustive
def test_encoder_and_tokenizer_of_a_masked_model_come_along_and_the_head_is_new(capsys):
    tokenizer = ("--tokenizer", "bpe", "--vocab-size", 290)
    train(capsys, "masked", "--text", "my.txt", *SIZES, *tokenizer, "--steps", 4, "--name", "old")
    given = ("--text", "my.tsv", "--steps", 2, "--peak", 1e-30, "--name", "new")
    train(capsys, "classify", "--from", "runs/old", *given)
    (old, before), (new, after) = (load_checkpoint(f"runs/{name}") for name in ("old", "new"))
    assert after["tokenizer"] == before["tokenizer"]
    assert new.options["num_classes"] == 4
    states = old.state_dict(), new.state_dict()
    shared = [name for name in states[1] if not name.startswith("head.")]
    assert shared == [name for name in states[0] if not name.startswith("head.")]
    for name in shared:
        np.testing.assert_allclose(states[1][name], states[0][name], atol=1e-12)
    assert new.head.classes.W.data.any()
    train(capsys, "classify", "--from", "runs/new", *given[:-1], "again")
    again = load_checkpoint("runs/again")[0]
    np.testing.assert_allclose(again.head.classes.W.data, new.head.classes.W.data, atol=1e-12)

"""`minitransformer export`: a run becomes a folder that other software reads, and writes the same text there."""

import json

import pytest

from minitransformer.interop import load_huggingface
from minitransformer.training import load_checkpoint
from tests.cli.run import assert_refused, run
from tests.helpers import same

TEXT = "The wind turned the mill, and the miller turned the wheel; the mill stood still when the wind was still.\n"
SHORT = ("--d-model", 24, "--num-heads", 3, "--num-layers", 2, "--length", 32, "--batch-size", 4)


@pytest.fixture
def empty_folder(tmp_path, monkeypatch):
    """The current folder."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def train(capsys, folder, *options):
    """A short run on a short text."""
    (folder / "text.txt").write_text(TEXT * 60, "utf8")
    outcome = run(capsys, "train", "text", "--text", "text.txt", *SHORT, "--name", "mill", *options)
    assert outcome.status == 0, outcome.err


@pytest.mark.exhaustive
@pytest.mark.parametrize(("options", "kind"), [((), "starcoder2"), (("--positions", "learned"), "gpt2")])
def test_an_exported_run_writes_the_same_text_in_their_library(options, kind, capsys, empty_folder):
    torch, transformers = pytest.importorskip("torch"), pytest.importorskip("transformers")
    train(capsys, empty_folder, "--steps", 150, "--peak", 0.01, "--warmup", 5, *options)
    answer = json.loads(run(capsys, "export", "runs/mill", "there", "--json").out.splitlines()[-1])
    assert (answer["model_type"], answer["tokenizer"]) == (kind, True)
    prompt = ("--prompt", "The wind", "--greedy", "--length", 20, "--json")
    ours, back = (
        json.loads(run(capsys, "generate", name, *prompt).out.splitlines()[-1]) for name in ("runs/mill", "there")
    )
    tokenizer = transformers.AutoTokenizer.from_pretrained("there")
    theirs = transformers.AutoModelForCausalLM.from_pretrained("there").eval()
    ids = tokenizer("The wind", return_tensors="pt")
    with torch.no_grad():
        written = theirs.generate(**ids, max_new_tokens=20, do_sample=False)
    assert tokenizer.decode(written[0]) == "The wind" + ours["text"]
    assert len(set(ours["text"].split())) > 3, "something was learned"
    assert back["text"] == ours["text"]
    weights, got = (model.state_dict() for model in (load_checkpoint("runs/mill")[0], load_huggingface("there")))
    assert weights.keys() == got.keys()
    assert all(same(got[name], weights[name]) for name in weights)


def test_what_cannot_be_exported_is_said_and_characters_go_without_a_tokenizer(capsys, empty_folder):
    train(capsys, empty_folder, "--steps", 2, "--tokenizer", "characters")
    outcome = run(capsys, "export", "runs/mill", "there")
    assert outcome.status == 0
    assert "there is a starcoder2 (Starcoder2ForCausalLM)" in outcome.out
    assert "without a tokenizer: a CharacterTokenizer has no counterpart there" in outcome.out
    assert_refused(run(capsys, "export", "runs/mill", "runs/mill"), "runs/mill is not an export, and holds")
    assert_refused(run(capsys, "export", "runs/none", "new"), "there is no model runs/none")
    assert_refused(run(capsys, "export", "runs/mill"), "FOLDER")

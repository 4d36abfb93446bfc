"""`evaluate` with runs of our own and a folder of Hugging Face's."""

import json
import math

import pytest

from minitransformer.cli import evaluate
from tests.cli.run import assert_refused, run
from tests.cli.test_huggingface_text import folder  # noqa: F401 - a fixture

SMALL = ("--length", 16, "--d-model", 8, "--num-layers", 1, "--steps", 2, "--batch-size", 2)
TEXT = "the mill by the river turns\n" * 30


@pytest.fixture
def text(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "my.txt"
    path.write_text(TEXT, "utf8")
    return path


def test_a_run_on_text_gets_bits_per_character_and_perplexity(text, capsys):
    assert (
        run(capsys, "train", "text", "--text", text, *SMALL, "--tokenizer", "characters", "--name", "mine").status == 0
    )
    status, out, err = run(capsys, "evaluate", "runs/mine", "--text", text, "--stride", 5, "--json")
    result = json.loads(out.splitlines()[-1])
    assert (status, err) == (0, "")
    assert f"windows              {result['windows']}, of at most 16 tokens, 5 apart" in out
    assert result["tokens"] == result["characters"] == len(TEXT)
    assert result["bits_per_character"] == pytest.approx(math.log2(result["perplexity"]))


PAIRS = "".join(f"{word}\t{word[::-1]}\n" for word in ("abc", "bca", "cab", "acb", "bac", "cba", "aabbcc"))


@pytest.fixture
def translator(text, capsys):
    """A run that has hardly learned to turn words around, and the words."""
    pairs = text.with_name("my.tsv")
    pairs.write_text(PAIRS, "utf8")
    sizes = ("--d-model", 8, "--num-heads", 2, "--num-layers", 1, "--steps", 2, "--vocab-size", 259)
    assert run(capsys, "train", "translation", "--text", pairs, *sizes, "--name", "mine").status == 0
    return pairs


def test_a_translator_is_scored_on_a_file_of_pairs(translator, capsys, monkeypatch):
    pytest.importorskip("sacrebleu", reason="the extra translation is not installed")
    score = evaluate.score_pairs
    seen = []
    monkeypatch.setattr(evaluate, "score_pairs", lambda *given: seen.append(given[2].pairs) or score(*given))
    status, out, err = run(capsys, "evaluate", "runs/mine", "--text", translator, "--json")
    result = json.loads(out.splitlines()[-1])
    assert (status, err, result["pairs"]) == (0, "", 7)
    assert f"{'perplexity of a token':<26} {result['perplexity']:.2f} on 7 pairs" in out
    assert f"{'chrF, beam 4':<26} {result['chrf']:.2f}" in out
    run(capsys, "evaluate", "runs/mine", "--text", translator, "--swap")
    assert seen[0] == [tuple(line.split("\t")) for line in PAIRS.splitlines()]
    assert seen[1] == [pair[::-1] for pair in seen[0]]


def test_what_a_model_cannot_be_scored_on_is_refused(translator, text, capsys):
    assert_refused(
        run(capsys, "evaluate", "runs/mine", "--text", text), "line 1: a sentence, a tab and its translation"
    )
    stride = ("--text", translator, "--stride", 3)
    assert_refused(run(capsys, "evaluate", "runs/mine", *stride), "--stride is for language models, and runs/mine tran")
    translator.write_text(f"a\t{'b' * 600}\n", "utf8")
    assert_refused(run(capsys, "evaluate", "runs/mine", "--text", translator), "has no pair of at most 256 tokens")


def test_bits_per_character_count_the_characters_and_not_the_tokens(folder, text, capsys):  # noqa: F811
    result = json.loads(run(capsys, "evaluate", folder, "--text", text, "--json").out.splitlines()[-1])
    assert result["tokens"] < 0.8 * len(TEXT)
    total = math.log2(result["perplexity"]) * result["tokens"]
    assert result["bits_per_character"] == pytest.approx(total / len(TEXT))

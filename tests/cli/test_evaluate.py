"""`evaluate` with runs of our own and a folder of Hugging Face's."""

import json
import math

import pytest

from tests.cli.run import run
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


def test_bits_per_character_count_the_characters_and_not_the_tokens(folder, text, capsys):  # noqa: F811
    result = json.loads(run(capsys, "evaluate", folder, "--text", text, "--json").out.splitlines()[-1])
    assert result["tokens"] < 0.8 * len(TEXT)
    total = math.log2(result["perplexity"]) * result["tokens"]
    assert result["bits_per_character"] == pytest.approx(total / len(TEXT))

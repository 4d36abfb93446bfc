"""A GPT-2 in which "!" is id 0, as in the real one, learns from a text with "!", and writes."""

import json

import numpy as np
import pytest

from minitransformer.data import Corpus, TextBatch, TextTask
from minitransformer.explorer.writing import writing_of
from minitransformer.interop import load_huggingface_tokenizer
from minitransformer.recipes.text import tokens_per_character
from minitransformer.tokenizers.visible import BYTE_ORDER, to_visible
from minitransformer.training import load_checkpoint
from tests.cli.run import run
from tests.interop.given import GPT2_FILE, make_state, save

pytestmark = pytest.mark.host_only

MERGES = ("S t", "o p", "G o")
END = 256 + len(MERGES)
CONFIG = GPT2_FILE | {"vocab_size": END + 1, "n_positions": 16, "eos_token_id": END, "bos_token_id": END}
TEXT = "Stop! Go! Wait! Run! " * 120


@pytest.fixture
def gpt2(tmp_path, monkeypatch):
    """A folder with a random GPT-2 whose tokens are the bytes, in the order that GPT-2 has, and its end."""
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "gpt2"
    folder.mkdir()
    state = {name: 0.1 * array for name, array in make_state("gpt2", CONFIG).items()}
    save(folder, state, CONFIG)
    merged = [pair.replace(" ", "") for pair in MERGES]
    vocab = [*(to_visible(bytes([byte])) for byte in BYTE_ORDER), *merged, "<|endoftext|>"]
    (folder / "vocab.json").write_text(json.dumps({token: id for id, token in enumerate(vocab)}), "utf8")
    (folder / "merges.txt").write_text("\n".join(["#version: 0.2", *MERGES]) + "\n", "utf8")
    (tmp_path / "stop.txt").write_text(TEXT, "utf8")
    return folder


def test_a_run_from_gpt2_counts_and_writes_texts_with_id_0(gpt2, capsys):
    steps = ("--steps", 2, "--batch-size", 4, "--warmup", 1, "--threads", 1, "--name", "stop")
    status, _, err = run(capsys, "train", "text", "--from", gpt2, "--text", "stop.txt", *steps)
    assert (status, err) == (0, "")
    model, metadata = load_checkpoint("runs/stop")
    assert (model.config.padding, model.config.start, model.config.end) == (None, END, END)
    assert writing_of(model, metadata).tokens[:2] == ("!", '"'), "the page must not call these pad and bos"


def test_tokens_with_id_0_are_tokens_of_a_text(gpt2):
    tokenizer = load_huggingface_tokenizer(gpt2)
    ids = tokenizer.encode("Stop! Go!")[None]
    assert np.count_nonzero(ids == 0) == 2
    task = TextTask(Corpus(TEXT, TEXT), tokenizer, 8)
    assert tokens_per_character(task, [TextBatch(ids, ids)]) == ids.size / len("Stop! Go!")

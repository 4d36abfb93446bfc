"""`generate` with a folder of Hugging Face's: a prompt becomes text in one command."""

import json

import pytest

from minitransformer.interop import load_huggingface, load_huggingface_tokenizer
from minitransformer.training import save_checkpoint
from tests.cli.run import assert_refused, run
from tests.interop.given import GPT2_FILE, make_state, save
from tests.interop.tokenizer_files import vocabulary, write_json, write_two_files

CONFIG = GPT2_FILE | {"vocab_size": len(vocabulary()[0]), "eos_token_id": 0}


@pytest.fixture
def folder(tmp_path):
    """A random GPT-2 with its tokenizer."""
    folder = tmp_path / "gpt2"
    folder.mkdir()
    save(folder, make_state("gpt2", CONFIG), CONFIG)
    write_two_files(folder)
    return folder


def generate(capsys, *arguments):
    status, out, err = run(capsys, "generate", *arguments, "--json")
    assert (status, err) == (0, "")
    text, _, result = out.removesuffix("\n").rpartition("\n")
    return text, json.loads(result)


def test_a_prompt_becomes_text(folder, capsys):
    text, result = generate(capsys, folder, "--prompt", "The wind\\n", "--length", 12)
    assert result["prompt"] == "The wind\\n"
    assert text == "The wind\n" + result["text"]
    assert 1 <= len(result["log_probs"]) <= 12
    assert all(log_prob <= 0 for log_prob in result["log_probs"])


def test_the_options_of_sampling_count(folder, capsys):
    def text(*options):
        return generate(capsys, folder, "--prompt", "The", "--length", 20, *options)[0]

    assert text("--seed", 1) == text("--seed", 1) != text("--seed", 2)
    greedy = text("--greedy")
    assert greedy == text("--greedy", "--seed", 7) == text("--top-k", 1) == text("--temperature", "1e-6")
    assert greedy != text("--greedy", "--no-repeat", 1)


def test_a_model_and_its_tokenizer_can_be_saved_as_one_file_of_ours(folder, capsys):
    ours = folder.parent / "ours.safetensors"
    save_checkpoint(ours, load_huggingface(folder), tokenizer=load_huggingface_tokenizer(folder).to_dict())
    options = ("--prompt", "The wind", "--greedy", "--length", 6, "--json")
    theirs = json.loads(run(capsys, "generate", folder, *options).out.splitlines()[-1])
    mine = json.loads(run(capsys, "generate", ours, *options).out.splitlines()[-1])
    assert mine["log_probs"][: len(theirs["log_probs"])] == theirs["log_probs"]
    assert mine["text"].startswith(theirs["text"].rstrip("\ufffd"))


def test_a_config_that_names_no_model_of_theirs_is_not_taken_for_one(folder, capsys):
    write_json(folder / "config.json", {"d_model": 8})
    assert_refused(run(capsys, "generate", folder), "is not a minitransformer checkpoint")

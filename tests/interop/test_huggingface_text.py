"""From a GPT-2 folder and a prompt to text: it ends where the model says so, and never shows half a character."""

import json
import re

import numpy as np
import pytest

from minitransformer.interop import is_huggingface_folder, load_huggingface, load_text_model
from tests.interop.given import GPT2_FILE, make_state, save
from tests.interop.tokenizer_files import vocabulary, write_json, write_two_files

pytestmark = pytest.mark.host_only
VOCAB = len(vocabulary()[0])
CONFIG = GPT2_FILE | {"vocab_size": VOCAB, "eos_token_id": 0}


def write(folder, state=None, **changes):
    """A folder with a random GPT-2 and its tokenizer."""
    config = CONFIG | changes
    save(folder, make_state("gpt2", config) if state is None else state, config)
    write_two_files(folder)
    return folder


@pytest.fixture
def folder(tmp_path):
    return write(tmp_path)


def scripted(ids):
    """A way to choose that chooses these ids, one after another."""
    ids = iter(ids)
    return lambda log_p: np.array([next(ids)])


def tokens(*names):
    return [vocabulary()[0][name] for name in names]


def test_greedy_text_is_that_of_reading_the_whole_text_again_for_each_token(folder):
    model, (vocab, _) = load_huggingface(folder), vocabulary()
    ids = [vocab["The"], vocab["Ġwind"]]
    pieces = list(load_text_model(folder).continue_text("The wind", 6))
    for piece in pieces:
        logits = model(np.array([ids]))[0, -1].astype(np.float64)
        ids.append(int(logits.argmax()))
        assert piece.log_prob == pytest.approx(logits.max() - np.log(np.exp(logits).sum()), abs=1e-4)
    assert len(pieces) == 6


def test_text_ends_after_the_token_that_ends_texts(folder):
    script = [*tokens("Ġmill", "Ġwind"), 0, *tokens("Ġmill")]
    pieces = list(load_text_model(folder).continue_text("The", 9, scripted(script)))
    assert [piece.text for piece in pieces] == [" mill", " wind", ""]
    assert all(piece.log_prob < 0 for piece in pieces)


@pytest.mark.parametrize(
    ("config", "generation", "ends"),
    [
        ({"eos_token_id": 5}, None, [5]),
        ({"eos_token_id": [7, 5]}, None, [5, 7]),
        ({"eos_token_id": None}, None, []),
        ({"eos_token_id": 5}, {"eos_token_id": [7]}, [7]),
        ({"eos_token_id": 5}, {"max_length": 50}, [5]),
        ({"eos_token_id": 5}, {"eos_token_id": None}, []),
        ({"eos_token_id": 10**6}, None, []),
    ],
)
def test_the_files_say_which_tokens_end_a_text(config, generation, ends, tmp_path):
    write(tmp_path, **config)
    if generation is not None:
        write_json(tmp_path / "generation_config.json", generation)
    for last in (5, 7, 0):
        count = len(list(load_text_model(tmp_path).continue_text("The", 3, scripted([10, last, 10]))))
        assert count == (2 if last in ends else 3)


@pytest.mark.parametrize("wrong", ["0", 1.0, True, [0, "1"], {}])
def test_an_end_that_is_no_id_is_refused(wrong, tmp_path):
    write(tmp_path)
    write_json(tmp_path / "generation_config.json", {"eos_token_id": wrong})
    with pytest.raises(TypeError, match=f"^eos_token_id must be .*, got {re.escape(repr(wrong))}$"):
        list(load_text_model(tmp_path).continue_text("The", 2))


def test_a_character_of_several_tokens_comes_whole(folder):
    script = [*tokens(*"ðŁĻĤ", "Ġmill", "â", "Ĥ"), 0]
    pieces = list(load_text_model(folder).continue_text("The", 9, scripted(script)))
    assert [piece.text for piece in pieces] == ["", "", "", "🙂", " mill", "", "", "", "\ufffd"]
    assert [piece.log_prob is None for piece in pieces] == [False] * 8 + [True]


def test_text_may_be_longer_than_the_model_has_positions(folder):
    assert CONFIG["n_positions"] == 9
    assert (
        len([piece for piece in load_text_model(folder).continue_text("The wind", 30) if piece.log_prob is not None])
        == 30
    )
    assert list(
        load_text_model(folder).continue_text("The mill stands still; the miller stands, still, at the mill.", 3)
    )


def test_ids_that_the_tokenizer_lacks_have_probability_0(tmp_path):
    state = make_state("gpt2", CONFIG | {"vocab_size": VOCAB + 40})
    state["ln_f.bias"][:] = 3.0
    state["wte.weight"][VOCAB:] = 3.0  # by far the most likely
    write(tmp_path, state, vocab_size=VOCAB + 40)
    seen = []
    pieces = list(
        load_text_model(tmp_path).continue_text("The", 5, lambda log_p: seen.append(log_p) or log_p.argmax(axis=-1))
    )
    assert all(log_p.shape == (1, VOCAB) for log_p in seen)
    assert all(np.exp(log_p).sum() == pytest.approx(1) for log_p in seen)
    assert len(pieces) >= len(seen) > 0


def test_a_tokenizer_with_more_ids_than_the_model_is_refused(tmp_path):
    write(tmp_path, vocab_size=VOCAB - 1)
    with pytest.raises(ValueError, match=rf"has {VOCAB} tokens, and its model only {VOCAB - 1}$"):
        list(load_text_model(tmp_path).continue_text("The", 2))


def test_weights_that_are_too_large_to_compute_with_are_refused(tmp_path):
    state = {name: array * 1e30 if "mlp" in name else array for name, array in make_state("gpt2", CONFIG).items()}
    write(tmp_path, state)
    with pytest.raises(ValueError, match="the model computes NaN or infinity: its weights are too large for float32"):
        list(load_text_model(tmp_path).continue_text("The", 2))


def test_a_folder_is_theirs_if_its_config_names_a_model(tmp_path):
    assert not is_huggingface_folder(tmp_path)
    assert not is_huggingface_folder(tmp_path / "missing")
    assert not is_huggingface_folder("a\0b")
    with pytest.raises(OSError, match="File name too long"):
        is_huggingface_folder("x" * 5000)
    for content, expected in (({}, False), ([], False), ({"d_model": 8}, False), (CONFIG, True)):
        (tmp_path / "config.json").write_text(json.dumps(content), "utf8")
        assert is_huggingface_folder(tmp_path) == expected

"""`translate` with sentences, a file, a pipe and a dialogue, its figure, and what it refuses."""

import json
import sys
from unittest import mock

import numpy as np
import pytest

from minitransformer.decoding import find_translations
from minitransformer.decoding.search.translate import Translation, encode_source
from minitransformer.models import Seq2Seq, Seq2SeqConfig, Transformer, TransformerConfig
from minitransformer.tokenizers import BytePairTokenizer
from minitransformer.training import load_checkpoint, save_checkpoint
from tests.cli.run import assert_refused, run

TOKENIZER = BytePairTokenizer.train("der hund sieht den könig und die große katze " * 3, 280)
SIZES = {"d_model": 8, "num_heads": 2, "d_ff": 6, "num_layers": 2, "max_len": 40}
MODEL = "model.safetensors"
RUN = "runs/translation"


def save(path, model, **metadata):
    save_checkpoint(path, model, **{"task": "translation", "tokenizer": TOKENIZER.to_dict(), **metadata})


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """Every test runs in a folder with a Transformer and a Seq2Seq, neither of them trained."""
    monkeypatch.chdir(tmp_path)
    save(tmp_path / RUN / MODEL, Transformer(TransformerConfig(TOKENIZER.vocab_size, **SIZES)))
    save(tmp_path / "runs/lstm" / MODEL, seq2seq("additive"))
    return tmp_path


def seq2seq(attention):
    sizes = {"d_model": 6, "hidden_size": 8, "num_layers": 1, "max_len": 40}
    return Seq2Seq(Seq2SeqConfig(TOKENIZER.vocab_size, attention=attention, **sizes))


@pytest.fixture
def calls(monkeypatch):
    """Every sentence is translated to itself in capital letters. Returns [(sentences, beam, alpha) of each call]."""
    calls = []

    def find(model, tokenizer, sentences, beam, alpha, *, on_progress=None):
        for sentence in sentences:
            encode_source(tokenizer, sentence, model.config.max_len)  # may refuse it
        calls.append(([*sentences], beam, alpha))
        if on_progress is not None:
            on_progress(len(sentences))
        return [Translation(text.upper(), tuple(tokenizer.encode(text).tolist()), -1.5, -1.0) for text in sentences]

    monkeypatch.setattr("minitransformer.cli.translate.find_translations", find)
    return calls


@pytest.mark.parametrize(
    ("name", "options"), [(RUN, {}), ("runs/lstm", {"beam": 1}), (f"{RUN}/{MODEL}", {"alpha": 2.0})]
)
def test_sentences_are_translated_in_a_line_each(name, options, capsys):
    sentences = ["der Hund", "die große Katze sieht den König"]
    words = [word for option, value in options.items() for word in (f"--{option}", value)]
    status, out, err = run(capsys, "translate", name, *words, *sentences, "--json")
    assert (status, err) == (0, "")
    *texts, results = out.splitlines()
    model, _ = load_checkpoint(name if name.endswith(MODEL) else f"{name}/{MODEL}")
    found = find_translations(model, TOKENIZER, sentences, **{"beam": 4, "alpha": 0.6, **options})
    assert texts == [translation.text for translation in found]
    for result, sentence, translation in zip(json.loads(results), sentences, found, strict=True):
        assert (result["source"], result["text"]) == (sentence, translation.text)
        assert (result["log_prob"], result["score"]) == (translation.log_prob, translation.score)
        assert result["tokens"] == [TOKENIZER.tokens[id] for id in translation.ids]


def test_options_may_stand_anywhere_and_sentences_may_begin_with_a_dash(calls, capsys):
    expected = (["ein hund", "- ja"], 2, 0.0)
    for words in (
        [RUN, "ein hund", "- ja", "--beam", 2, "--alpha", 0],
        [RUN, "--beam", 2, "--alpha", 0, "ein hund", "- ja"],
        [RUN, "--beam", 2, "ein hund", "--alpha", 0, "- ja"],
        ["--beam", 2, RUN, "--alpha=0", "ein hund", "- ja"],
    ):
        assert run(capsys, "translate", *words) == (0, "EIN HUND\n- JA\n", "")
        assert calls.pop() == expected


def test_a_sentence_is_tidied_as_those_of_training_are(calls, capsys):
    assert run(capsys, "translate", RUN, "  ko\u0308nig \t hund\n").out == "KÖNIG HUND\n"
    assert calls == [(["k\xf6nig hund"], 4, 0.6)]


def test_lines_from_a_pipe_get_a_line_each_in_batches(calls, typed, capsys, monkeypatch):
    monkeypatch.setattr("minitransformer.cli.translate.LINES_AT_ONCE", 3)
    typed("hund", "", "der könig", "katze\r", "a " * 50, " \t", "und")
    status, out, err = run(capsys, "translate", RUN, "--json")
    *lines, results = out.splitlines()
    assert lines == ["HUND", "", "DER KÖNIG", "KATZE", "", "", "UND"]
    assert status == 2
    assert err.startswith("minitransformer translate: the sentence 'a a a a a a a a a a a a a a a...' has ")
    assert err.endswith(" tokens, end token included, and this model reads at most 40\n")
    assert err.count("\n") == 1
    assert [sentences for sentences, _, _ in calls] == [["hund", "", "der könig"], ["katze", ""], ["und"]]
    assert [set(result) for result in json.loads(results)].count({"source", "error"}) == 1


def test_a_dialogue_on_a_terminal_ends_with_the_input(calls, typed, capsys):
    typed("hund", "", "a " * 50, "katze", terminal=True)
    status, out, err = run(capsys, "translate", RUN)
    assert (status, out) == (0, "Type a sentence; Ctrl-D ends.\n> HUND\n> > > KATZE\n> \n")
    assert err.startswith("minitransformer translate: the sentence 'a a ")
    assert err.count("\n") == 1


@pytest.mark.parametrize("end", ["", "\n"])
def test_a_file_is_translated_line_by_line_with_a_bar(end, calls, capsys, folder, monkeypatch):
    bar = mock.MagicMock()
    monkeypatch.setattr("minitransformer.cli.translate.tqdm", bar)
    (folder / "german.txt").write_bytes(f"\ufeffhund\r\n\nder\u2028könig\nund{end}".encode())
    assert run(capsys, "translate", RUN, "--file", "german.txt") == (0, "HUND\n\nDER KÖNIG\nUND\n", "")
    bar.assert_called_once_with(total=4, unit="sentence")
    bar.return_value.__enter__.return_value.update.assert_called_once_with(4)
    bar.return_value.__exit__.assert_called_once()


@pytest.mark.parametrize(("name", "options", "layer"), [(RUN, (), 2), (RUN, ("--layer", 1), 1), ("runs/lstm", (), 1)])
def test_attention_draws_every_head_of_one_layer_with_readable_tokens(name, options, layer, capsys, monkeypatch):
    drawn = []
    monkeypatch.setattr("minitransformer.plotting.plot_attention", lambda *arguments: drawn.append(arguments))
    arguments = ("translate", name, "der könig", "--attention", "figures/map.png", *options)
    status, _, err = run(capsys, *arguments)
    assert (status, err) == (0, "saved figures/map.png\n")
    ((weights, queries, keys, path, title, query),) = drawn
    model, _ = load_checkpoint(f"{name}/{MODEL}")
    (translation,) = find_translations(model, TOKENIZER, ["der könig"])
    source = np.array([[*TOKENIZER.encode("der könig"), 2]])
    expected = model.attention_weights(source, np.array([[1, *translation.ids[:-1]]])).cross[layer - 1][0]
    assert weights.shape == (1 if name == "runs/lstm" else 2, len(translation.ids), source.shape[1])
    assert np.array_equal(weights, expected)
    assert (len(queries), len(keys)) == weights.shape[1:]
    assert "".join(keys) == "der▁könig<eos>"
    assert path == "figures/map.png"
    assert title.startswith(f"Cross-attention, layer {layer} of {1 if name == 'runs/lstm' else 2}: ")
    assert query == "token to be written"


@pytest.mark.parametrize(("kind", "first"), [("encoder", "der"), ("decoder", "<bos>")])
def test_attention_of_the_encoder_and_of_the_decoder_can_be_drawn_too(kind, first, capsys, monkeypatch):
    drawn = []
    monkeypatch.setattr("minitransformer.plotting.plot_attention", lambda *arguments: drawn.append(arguments))
    assert run(capsys, "translate", RUN, "der könig", "--attention", "map.png", "--attention-of", kind).status == 0
    ((weights, queries, keys, _, title, _),) = drawn
    assert weights.shape == (2, len(queries), len(queries))
    assert queries == keys
    assert "".join(queries).startswith(first)
    assert title.startswith(f"Self-attention of the {kind}, layer 2 of 2: ")
    assert np.allclose(weights.sum(axis=-1), 1.0)


@pytest.mark.exhaustive
@pytest.mark.draws
def test_the_figure_is_a_png_whatever_the_tokens(calls, capsys, folder):
    (folder / "map.png").write_bytes(b"an old one")
    sentence = "die $1 \x07 猫 \\$x_1$ ^"
    assert run(capsys, "translate", RUN, sentence, "--attention", "map.png").status == 0
    assert (folder / "map.png").read_bytes().startswith(b"\x89PNG")


def test_models_and_kinds_without_weights_to_draw_are_refused(folder, capsys):
    refused = "--attention-of must be one of cross, encoder, decoder, got 'all'"
    assert_refused(run(capsys, "translate", RUN, "x", "--attention-of", "all"), refused)
    save(folder / "none", seq2seq("none"))
    save(folder / "tiled", Transformer(TransformerConfig(TOKENIZER.vocab_size, attention="tiled", **SIZES)))
    for name, reason in (("none", "none has no attention to draw"), ("tiled", "and that of tiled is tiled")):
        assert run(capsys, "translate", name, "x").status == 0
        assert_refused(run(capsys, "translate", name, "x", "--attention", "map.png"), reason)


def test_closed_input_is_refused(monkeypatch, capsys):
    monkeypatch.setattr(sys, "stdin", None)
    assert_refused(run(capsys, "translate", RUN), "there is no input to read sentences from: give a sentence or --file")


def test_a_note_names_characters_that_training_never_had(folder, capsys):
    model = Transformer(TransformerConfig(TOKENIZER.vocab_size, **SIZES))
    save(folder / "runs/known" / MODEL, model, characters="".join(sorted(set("der hund katze"))))
    result = run(capsys, "translate", "runs/known", "der hund łä", "--beam", 1)
    assert (result.status, result.err.count("\n")) == (0, 1)
    assert "note: the model has never seen 'ä', 'ł': it reads their bytes" in result.err
    assert run(capsys, "translate", "runs/known", "der hund", "--beam", 1).err == ""
    assert run(capsys, "translate", RUN, "łä", "--beam", 1).err == "", "a file that does not say what it knows"

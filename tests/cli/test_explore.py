"""`explore`: the page with the running example or a model of the user's own, on a local address or in a folder."""

import json
import socket
import threading

import numpy as np
import pytest

from minitransformer.data import get_task
from minitransformer.explorer import example_data
from minitransformer.explorer.export import data_text
from minitransformer.models import BERT, GPT, Transformer, TransformerConfig, bert_config, gpt_config
from minitransformer.tokenizers import CharacterTokenizer
from minitransformer.training import Adam, Checkpointer, TrainingSettings, save_checkpoint, train
from tests.cli.run import assert_refused, run
from tests.cli.test_embed import bert_folder
from tests.explorer.conftest import page  # noqa: F401, a fixture
from tests.explorer.reading import read_model
from tests.minilm import minilm

SIZES = {"d_model": 8, "num_heads": 2, "d_ff": 6, "num_layers": 1, "max_len": 24}
MODEL = "model.safetensors"


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch, page):  # noqa: F811
    """Every test runs in a folder with untrained models, and with a page of a few lines."""
    monkeypatch.chdir(tmp_path)
    for name in ("reverse", "addition", "recall"):
        save_checkpoint(tmp_path / "runs" / name / MODEL, make_model(name), task=name)
    save_checkpoint(tmp_path / "own.safetensors", make_model("reverse"))
    save_checkpoint(tmp_path / "gpt.safetensors", GPT(gpt_config(29, **SIZES)), task="reverse")
    return tmp_path


def make_model(task):
    return Transformer(TransformerConfig(len(get_task(task).vocabulary), **SIZES), seed=5)


@pytest.fixture
def served(monkeypatch):
    """[(data, port)] of each page that is served. The command then goes on as after Ctrl-C."""
    calls = []

    def serve(data, port, ready):
        calls.append((data, port))
        ready("http://127.0.0.1:5000/")
        raise KeyboardInterrupt

    monkeypatch.setattr("minitransformer.cli.explore.serve", serve)
    return calls


@pytest.fixture(autouse=True)
def opened(monkeypatch):
    """The addresses that a browser was to open, with a method to wait for one."""

    class Opened(list):
        def open(self, address):
            self.append(address)
            arrived.set()

        def wait(self):
            assert arrived.wait(10)
            return self

    arrived, addresses = threading.Event(), Opened()
    monkeypatch.setattr("webbrowser.open", addresses.open)
    return addresses


def test_the_running_example_is_opened_in_the_browser_until_ctrl_c(served, opened, capsys):
    outcome = run(capsys, "explore")
    assert outcome.status == 130
    assert outcome.out == "stop → pots (the right answer)\nhttp://127.0.0.1:5000/ (Ctrl-C ends)\n"
    assert outcome.err == "minitransformer explore: stopped\n"
    ((data, port),) = served
    assert (data_text(data), port) == (data_text(example_data()), 0)
    assert opened.wait() == ["http://127.0.0.1:5000/"]


def test_a_browser_that_runs_in_the_terminal_does_not_keep_the_page_waiting(served, monkeypatch, capsys):
    closed = threading.Event()
    monkeypatch.setattr("webbrowser.open", lambda address: closed.wait(10))
    assert run(capsys, "explore").status == 130
    closed.set()


def test_without_a_browser_the_address_is_printed(served, opened, capsys):
    _, out, _ = run(capsys, "explore", "--no-browser", "--port", "8080", "--word", "top", "--json")
    assert out.splitlines()[:2] == ["top → pot (the right answer)", "http://127.0.0.1:5000/ (Ctrl-C ends)"]
    said = {"title": "top → pot", "answer": "the right answer", "address": "http://127.0.0.1:5000/"}
    assert json.loads(out.splitlines()[-1]) == said
    assert served[0][1] == 8080
    assert opened == []


@pytest.mark.parametrize(
    ("arguments", "title"),
    [
        (["runs/reverse"], "stop → pots (the right answer)"),
        ([f"runs/reverse/{MODEL}", "--word", "hello"], "hello → olleh (the right answer)"),
        (["runs/reverse", "--word", "hello", "--answer", "world"], "hello → world (your answer)"),
        (["runs/addition"], "57+8 → 65 (the right answer)"),
        (["runs/addition", "--word", "12+34", "--answer", "47"], "12+34 → 47 (your answer)"),
        (["runs/recall", "--word", "b1k9b"], "b1 k9 b → 1 (the right answer)"),
        (["own.safetensors", "--word", "5 4 eos", "--answer", "3"], "5 4 eos → 3 (your answer)"),
    ],
)
def test_a_model_reads_a_word_in_the_writing_of_its_task(arguments, title, served, capsys):
    _, out, err = run(capsys, "explore", *arguments)
    assert (out.splitlines()[0], err) == (title, "minitransformer explore: stopped\n")
    ((data, _),) = served
    assert f"{data['title']} (" in title
    assert data["source_end"] == ([] if "own" in arguments[0] else [2])


@pytest.mark.parametrize("arguments", [["runs/addition", "--word", "12"], ["own.safetensors", "--word", "5 4"]])
def test_a_word_without_a_right_answer_gets_what_the_model_writes(arguments, served, capsys):
    assert run(capsys, "explore", *arguments).out.splitlines()[0].endswith(" (what the model writes)")
    assert len(served[0][0]["target"]) <= 16


def test_a_checkpoint_of_an_unfinished_run_is_shown_with_a_note(served, capsys, folder):
    model = make_model("reverse")
    checkpoints = Checkpointer(folder / "runs/half/checkpoints", 1, 1, {"recipe": "reverse"})
    settings = TrainingSettings(steps=2, batch_size=2)
    train(model, get_task("reverse"), Adam(model.parameters()), settings=settings, checkpointer=checkpoints)
    _, out, err = run(capsys, "explore", "runs/half")
    assert out.startswith("stop → pots (the right answer)\n")
    assert err.startswith("note: this run is not finished; the model is that of step-00000002.safetensors\n")


def test_write_copies_the_page_with_the_model(capsys, folder, opened):
    arguments = ("explore", "runs/reverse", "--word", "top", "--write", "site/page")
    status, out, err = run(capsys, *arguments, "--json")
    assert (status, err) == (0, "")
    first, second, result = out.splitlines()
    assert (first, second) == ("top → pot (the right answer)", "saved site/page/index.html")
    assert json.loads(result) == {"title": "top → pot", "answer": "the right answer", "folder": "site/page"}
    files = {path.relative_to(folder / "site/page").as_posix() for path in (folder / "site").rglob("*.*")}
    assert files == {"index.html", "style.css", "views/model.js", "data.js"}
    assert read_model((folder / "site/page/data.js").read_text("utf-8"))["title"] == "top → pot"
    assert opened == []
    assert_refused(run(capsys, *arguments), "site/page is not empty: choose a new folder")


def test_two_runs_are_compared_under_the_names_of_their_folders(served, opened, capsys, folder):
    other = make_model("reverse")
    other.output.E.data += 1
    save_checkpoint(folder / "runs/again" / MODEL, other, task="reverse")
    _, out, _ = run(capsys, "explore", "runs/reverse", "runs/again/", "--word", "hello")
    assert out.startswith("hello → olleh (the right answer)\nhttp://127.0.0.1:5000/#view=compare ")
    ((data, _),) = served
    assert list(data["weights"]) == ["reverse", "again"]
    first, second = (data["weights"][name]["E"] for name in data["weights"])
    assert (second - first).round(6).tolist() == (0 * first + 1).tolist()
    assert opened.wait() == ["http://127.0.0.1:5000/#view=compare"]


def test_a_port_in_use_is_refused_and_named(capsys):
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        status, out, err = run(capsys, "explore", "--port", port)
    assert (status, out) == (2, "stop → pots (the right answer)\n")
    assert err.startswith(f"minitransformer explore: cannot listen on port {port}: ")
    assert err.count("\n") == 1


def test_a_model_that_is_too_large_shows_its_attention_with_a_note(served, capsys, folder):
    config = TransformerConfig(29, **{**SIZES, "d_ff": 8000})
    save_checkpoint(folder / "runs/wide" / MODEL, Transformer(config), task="reverse")
    _, out, err = run(capsys, "explore", "runs/wide", "--word", "hello")
    assert out.startswith("hello → olleh (the right answer)\n")
    assert err.startswith("note: the explorer shows models of at most 255,000 weights, and this model has 273,")
    assert "; so the page shows its attention alone\n" in err
    ((data, _),) = served
    assert (data["kind"], data["writes"]) == ("attention", [*"olleh", "eos"])


def save_bert():
    tokenizer = CharacterTokenizer.train("a cat slept")
    model = BERT(bert_config(tokenizer.vocab_size, **SIZES), seed=5)
    save_checkpoint("bert.safetensors", model, tokenizer=tokenizer.to_dict())


def test_a_bert_shows_its_attention_in_two_sentences_and_their_cosine(served, capsys):
    save_bert()
    _, out, _ = run(capsys, "explore", "bert.safetensors", "a cat", "pets slept", "--json")
    ((data, _),) = served
    title = f"cosine {data['cosine']:.3f}: a cat ↔ pets slept"
    first, second, last = out.splitlines()
    assert (first, second) == (title, "http://127.0.0.1:5000/ (Ctrl-C ends)")
    assert json.loads(last) == {"title": title, "cosine": data["cosine"], "address": "http://127.0.0.1:5000/"}
    assert [each["stack"] for each in data["maps"]] == ["first", "second"]


@pytest.mark.host_only
def test_a_bert_of_hugging_face_is_shown_from_its_folder(served, capsys, folder):
    bert_folder(folder / "theirs")
    run(capsys, "explore", "theirs", "ab e", "e ab ab")
    assert served[0][0]["tokens"]["first"] == ["[CLS]", "a", "##b", "e", "[SEP]"]


def assert_banks_are_kept_apart(data):
    """What docs/explorer.md says about these sentences."""
    sizes = np.abs([each["products"] for each in data["maps"] if each["stack"] == "second"])
    layer, head, row, key = np.unravel_index(sizes.argmax(), sizes.shape)
    assert (layer + 1, head, data["tokens"]["second"][row], data["tokens"]["second"][key]) == (1, 10, "bank", "river")
    assert data["maps"][6]["products"][head, row, key] == pytest.approx(-0.029, abs=5e-4)
    for each in data["maps"]:
        assert np.abs(each["products"]).max() <= sizes.max()
        if 2 <= each["layer"] <= 5:
            weights, sizes_here = each["weights"], np.abs(each["products"])
            assert weights[..., 0].sum() > weights.sum() / 2
            assert sizes_here[..., 0].sum() < sizes_here.sum() / 10


@pytest.mark.host_only
def test_the_installed_bert_has_a_short_name_unless_a_run_has_it(served, capsys):
    minilm()
    sentences = ("The bank raised its interest rate.", "We sat on the bank of the river.")
    assert run(capsys, "explore", "minilm", *sentences).out.startswith(f"cosine 0.331: {' ↔ '.join(sentences)}\n")
    assert_banks_are_kept_apart(served[0][0])
    save_checkpoint("minilm", make_model("reverse"), task="reverse")
    assert run(capsys, "explore", "minilm").out.startswith("stop → pots")


@pytest.mark.parametrize("arguments", [["bert.safetensors", "a", "cat", "slept"], ["runs/reverse"] * 3])
def test_more_than_two_sentences_or_runs_are_refused(arguments, capsys):
    save_bert()
    what = "BERT: give it two sentences, each in quotes" if "cat" in arguments else "Transformer without a tokenizer"
    assert_refused(run(capsys, "explore", *arguments), f"{arguments[0]} is a {what}")

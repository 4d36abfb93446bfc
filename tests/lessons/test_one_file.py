"""The files of lessons/one_file: short, alone, right in every gradient, and as good as they say."""

import re
import subprocess
import sys

import numpy as np
import pytest

import minitransformer as mt
from minitransformer.course import FOLDER
from tests.lessons.one_file import convert, load
from tests.lessons.scalar import as_values, loss_of

FILES = {"transformer": 250, "gpt": 150}  # the most lines


def close(ours, theirs, tolerance=1e-12):
    return np.abs(ours - theirs).max() <= tolerance * max(1e-3, np.abs(theirs).max())


def paper(dtype=float):
    """A small Transformer with weights of order one, and a ragged batch: (module, model, source, read, write)."""
    module = load("transformer")
    model = module.Transformer(V=7, C=6, H=3, F=5, N=2)
    rng = np.random.default_rng(1)
    for p in module.parameters:
        p.data += 0.3 * rng.standard_normal(p.data.shape)
    convert(module, dtype)
    source = np.array([[3, 4, 3, 5], [6, 0, 0, 0], [5, 5, 4, 0]])
    read, write = np.array([[1, 4, 5], [1, 6, 0], [1, 3, 3]]), np.array([[4, 5, 2], [6, 2, 0], [3, 3, 2]])
    return module, model, source, read, write


def run_paper(module, model, source, read, write, smoothing=0.1):
    loss, dz = module.cross_entropy(model.forward(source, read), write, smoothing)
    model.backward(dz)
    return loss


@pytest.mark.parametrize("name", FILES)
def test_a_file_is_short_and_needs_numpy_alone(name):
    text = (FOLDER / "one_file" / f"{name}.py").read_text("utf8")
    assert len(text.splitlines()) <= FILES[name]
    imported = set(re.findall(r"^(?:import|from) (\w+)", text, flags=re.MULTILINE))
    assert imported <= {"os", "sys", "pathlib", "pydoc_data", "numpy"}


@pytest.mark.parametrize("name", FILES)
def test_the_guide_of_the_lessons_says_how_long_a_file_is(name):
    guide = (FOLDER / "README.md").read_text("utf8")
    count = len((FOLDER / "one_file" / f"{name}.py").read_text("utf8").splitlines())
    about = guide.partition(f"(one_file/{name}.py)")[2]
    assert re.search(r"\b(\d+)\s+lines", about)[1] == str(count)


def in_library(model, config):
    """The library's model with the weights of transformer.py, and each of its arrays' names with our parameters."""
    pairs = {"source_embedding.tokens.E": [model.embedding.E]}

    def linear(name, *ours):
        pairs[f"{name}.W"], pairs[f"{name}.b"] = [each.W for each in ours], [each.b for each in ours]

    def norm(name, ours):
        pairs[f"{name}.gamma"], pairs[f"{name}.beta"] = [ours.gamma], [ours.beta]

    def ffn(name, ours, after):
        linear(f"{name}.sublayer.expand", ours.inner)
        linear(f"{name}.sublayer.contract", ours.outer)
        norm(f"{name}.norm", after)

    def self_attention(name, ours, after):
        linear(f"{name}.sublayer.qkv", ours.W_q, ours.W_k, ours.W_v)
        linear(f"{name}.sublayer.output", ours.W_o)
        norm(f"{name}.norm", after)

    for i, (attention, norm1, feed, norm2) in enumerate(model.encoder):
        self_attention(f"encoder.layers.{i}.self_attention", attention, norm1)
        ffn(f"encoder.layers.{i}.feed_forward", feed, norm2)
    for i, (attention, norm1, cross, norm2, feed, norm3) in enumerate(model.decoder):
        self_attention(f"decoder.layers.{i}.self_attention", attention, norm1)
        linear(f"decoder.layers.{i}.cross_attention.sublayer.q", cross.W_q)
        linear(f"decoder.layers.{i}.cross_attention.sublayer.kv", cross.W_k, cross.W_v)
        linear(f"decoder.layers.{i}.cross_attention.sublayer.output", cross.W_o)
        norm(f"decoder.layers.{i}.cross_attention.norm", norm2)
        ffn(f"decoder.layers.{i}.feed_forward", feed, norm3)
    library = mt.Transformer(config, seed=None, dtype=np.float64)
    library.load_state_dict({name: np.concatenate([p.data for p in ours], axis=-1) for name, ours in pairs.items()})
    return library, pairs


def test_the_papers_file_has_the_loss_and_all_gradients_of_the_library():
    module, model, source, read, write = paper()
    config = mt.TransformerConfig(7, d_model=6, num_heads=3, d_ff=5, num_layers=2, dropout=0.0)
    library, pairs = in_library(model, config)
    loss = run_paper(module, model, source, read, write)
    loss_fn = mt.CrossEntropyLoss(0.1)
    logits, cache = library.forward(source, read)
    theirs, loss_cache = loss_fn.forward(logits, write)
    library.backward(loss_fn.backward(1.0, loss_cache), cache)
    assert abs(loss - float(theirs)) < 1e-13
    gradients = {name: parameter.grad for name, parameter in library.named_parameters()}
    assert sorted(gradients) == sorted(pairs)
    for name, ours in pairs.items():
        assert close(np.concatenate([p.grad for p in ours], axis=-1), gradients[name]), name


def test_adam_in_the_papers_file_is_that_of_the_library_with_the_papers_schedule():
    module, *_ = paper()
    parameters = [mt.Parameter(p.data.copy()) for p in module.parameters]
    adam = mt.Adam(parameters)
    rng = np.random.default_rng(2)
    for t in range(1, 6):
        for ours, theirs in zip(module.parameters, parameters, strict=True):
            ours.grad[...] = theirs.grad[...] = rng.standard_normal(ours.data.shape)
        module.adam(t, C=6, warmup=3, factor=0.7)
        adam.lr = mt.noam(t, d_model=6, warmup=3, factor=0.7)
        adam.step()
        assert all(close(p.data, q.data) for p, q in zip(module.parameters, parameters, strict=True))
        assert not any(p.grad.any() for p in module.parameters)


def small_gpt(dtype=float):
    module = load("gpt")
    model = module.GPT(5, T=6, C=6, H=3, N=2)
    convert(module, dtype)
    return module, model


def test_the_gpt_agrees_with_an_automatic_gradient_of_single_numbers():
    module, model = small_gpt()
    pieces = np.array([[3, 0, 4, 4, 1], [2, 2, 0, 1, 3]])
    loss, dz = module.cross_entropy(model.forward(pieces[:, :-1]), pieces[:, 1:])
    model.backward(dz)
    weights = as_values([p.data for p in module.parameters])
    theirs = sum(loss_of(weights, 3, piece[:-1], piece[1:]) for piece in pieces) * 0.5
    theirs.backward()
    assert abs(loss - theirs.data) < 1e-13
    for p, matrix in zip(module.parameters, weights, strict=True):
        assert close(p.grad, np.array([[value.grad for value in row] for row in matrix]))


@pytest.mark.exhaustive
def test_the_papers_file_learns_answers_and_draws_where_it_looks(capsys, monkeypatch):
    module = load("transformer")
    draw = module.random_words
    monkeypatch.setattr(module, "random_words", lambda count, **options: draw(min(count, 100), **options))
    module.main(["cab", "z"], steps=20)
    printed = capsys.readouterr().out
    assert re.search(r"step 20 of 20, loss \d\.\d{3}", printed)
    assert re.search(r"^\d+ of 100 words", printed, flags=re.MULTILINE)
    assert re.search(r"^cab -> .*\n +cab   cab   cab   cab   \(for each head", printed, flags=re.MULTILINE)


@pytest.mark.parametrize("word", ["Hello", "", "abcdefghijk", "né"])
def test_the_papers_file_refuses_a_word_that_it_cannot_read(word):
    with pytest.raises(SystemExit, match=r"is not a word of 1 to 10 lower-case letters"):
        load("transformer").main([word], steps=1)


def test_the_gpt_continues_a_text_of_ones_own_and_leaves_out_unknown_letters(tmp_path):
    path = tmp_path / "my.txt"
    path.write_text("to be or not to be, that is the question. " * 60, encoding="utf8")
    code = (
        "import sys; sys.path.insert(0, sys.argv[1]); import gpt; from pathlib import Path; "
        "gpt.main(Path(sys.argv[2]).read_text('utf8'), 'öto', steps=3, B=2, T=8)"
    )
    run = [sys.executable, "-c", code, str(FOLDER / "one_file"), str(path)]
    printed = subprocess.run(run, capture_output=True, encoding="utf8", check=True).stdout
    assert re.search(
        r"\d\.\d\d bits per character of text that it has not read\n\nöto[a-z ,.]{400}$", printed.strip("\n")
    )


@pytest.mark.weekly
def test_the_papers_file_reverses_99_percent_of_unseen_words(capsys):
    load("transformer").main(["hello"])
    printed = capsys.readouterr().out
    assert int(re.search(r"(\d+) of 1000 words", printed)[1]) >= 990
    assert "hello -> olleh" in printed


def trigram_bits(text):
    """Bits per character of the last tenth, by a trigram of the rest that falls back to pairs and to single letters."""
    letters = sorted(set(text))
    ids = np.array([letters.index(letter) for letter in text])
    read, held_out = np.split(ids, [len(ids) * 9 // 10])
    V, best = len(letters), np.inf
    singles, pairs, triples = np.bincount(read, minlength=V) + 1.0, np.zeros((V, V)), np.zeros((V, V, V))
    np.add.at(pairs, (read[:-1], read[1:]), 1)
    np.add.at(triples, (read[:-2], read[1:-1], read[2:]), 1)
    for weight in (1, 4, 16):  # the best for the trigram, as seen on the text that it is tested on
        p2 = (pairs + weight * singles / singles.sum()) / (pairs.sum(axis=1, keepdims=True) + weight)
        p3 = (triples + weight * p2) / (triples.sum(axis=2, keepdims=True) + weight)
        best = min(best, -np.log2(p3[held_out[:-2], held_out[1:-1], held_out[2:]]).mean())
    return best


@pytest.mark.weekly
def test_the_gpt_beats_a_trigram_on_text_that_it_has_not_read(capsys):
    module = load("gpt")
    text = "\n".join(module.topics.values())
    module.main(text, "The ")
    printed = capsys.readouterr().out
    assert float(re.search(r"([\d.]+) bits per character of text", printed)[1]) < trigram_bits(text) - 0.2

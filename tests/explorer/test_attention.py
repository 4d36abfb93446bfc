"""The attention of models that the whole page cannot show: weights, and gradient times weight.

Of a BERT, the gradient is that of the cosine of two sentences.
"""

import numpy as np
import pytest

from minitransformer.decoding import greedy_decode
from minitransformer.explorer import attention_data, sentences_data, write_page
from minitransformer.explorer.attention import CONTINUED, LONGEST, check_attention, watched
from minitransformer.explorer.export import data_text
from minitransformer.explorer.folder import page_files
from minitransformer.explorer.writing import ids_writing, toy_writing
from minitransformer.functional import cross_entropy, cross_entropy_backward
from minitransformer.layers.attention import FullAttention
from minitransformer.models import BERT, GPT, Transformer, TransformerConfig, bert_config, gpt_config, t5_config
from minitransformer.recipes.sentences import embeddings
from minitransformer.tokenizers import CharacterTokenizer
from minitransformer.vocabulary import BOS, EOS, PAD
from tests.helpers import randomize

SIZES = {"d_model": 16, "num_heads": 4, "d_ff": 10, "num_layers": 2, "dropout": 0.0, "max_len": 48}
STEP = 1e-30
KINDS = {
    "paper": lambda dtype: Transformer(TransformerConfig(29, **SIZES), seed=3, dtype=dtype),
    "T5, grouped": lambda dtype: Transformer(t5_config(29, **SIZES, num_kv_heads=2), seed=3, dtype=dtype),
    "GPT": lambda dtype: GPT(gpt_config(29, **SIZES), seed=3, dtype=dtype),
    "GPT with RoPE": lambda dtype: GPT(gpt_config(29, **{**SIZES, "positions": "rope"}), seed=3, dtype=dtype),
}


LETTERS = CharacterTokenizer.train("a cat slept")
SENTENCES = ("a cat", "pets slept")


class Shifted(FullAttention):
    """Full attention with a small imaginary number added to one weight p, in proportion to it.

    A cell without a row and a key stands for all weights of a head.
    """

    def __init__(self):
        self.cell = None

    def forward(self, q, k, v, allowed=None, **options):
        y, cache = super().forward(q, k, v, allowed, **options)
        if self.cell:
            head, *cells = self.cell
            part = np.s_[0, head]
            for row, key in [cells] if cells else np.ndindex(cache.weights[part].shape):
                y[0, head, row] += 1j * STEP * cache.weights[0, head, row, key] * cache.v[0, head, key]
        return y, cache


def example(model):
    """Inputs and targets for a model."""
    ids = np.random.default_rng(0).integers(3, 29, 9)
    if isinstance(model, GPT):
        return (ids[None, :8],), np.array([[PAD, PAD, PAD, *ids[4:]]])
    return (ids[None, :5], np.array([[BOS, *ids[5:]]])), np.array([[*ids[5:], EOS]])


def log_probability(model, inputs, targets):
    z = model(*inputs)[0]
    rows = np.flatnonzero(targets[0] != PAD)
    return sum(z[t, targets[0, t]] - np.log(np.exp(z[t]).sum()) for t in rows)


@pytest.mark.parametrize("make", KINDS.values(), ids=KINDS)
def test_gradient_of_each_weight_is_that_of_the_complex_step(make):
    model, other = make(np.float64), make(np.complex128)
    inputs, targets = example(model)
    with watched(model) as pairs:
        logits, cache = model.forward(*inputs)
        _, cache_loss = cross_entropy(logits, targets)
        model.backward(cross_entropy_backward(-float((targets != PAD).sum()), cache_loss), cache)
    rng = np.random.default_rng(1)
    with watched(other) as others:
        for _, seen in others:
            seen.__class__ = Shifted
            seen.cell = None
        for (facts, seen), (_, shifted) in zip(pairs, others, strict=True):
            product = (seen.weights * seen.dweights)[0]
            assert np.abs(product).max() > 1e-6, facts
            for flat in rng.choice(product.size, 12, replace=False):
                shifted.cell = np.unravel_index(flat, product.shape)
                slope = log_probability(other, inputs, targets).imag / STEP
                assert product[shifted.cell] == pytest.approx(slope, rel=1e-9, abs=1e-14), (facts, shifted.cell)
            shifted.cell = None


def bert(dtype=np.float32, **changes):
    return randomize(BERT(bert_config(LETTERS.vocab_size, **{**SIZES, **changes}), dtype=dtype))


def cosine(a, b):
    """Analytic, so a complex step passes through."""
    return (a * b).sum() / np.sqrt((a * a).sum() * (b * b).sum())


def test_products_of_two_sentences_are_slopes_of_their_cosine_and_their_sum_is_the_whole_heads(monkeypatch):
    monkeypatch.setattr("minitransformer.explorer.attention.DIGITS", 17)
    data, other = sentences_data(bert(np.float64), LETTERS, *SENTENCES), bert(np.complex128)
    ids = [np.array([[BOS, *LETTERS.encode(text)]]) for text in SENTENCES]
    rng = np.random.default_rng(1)
    with watched(other) as pairs:
        layers = [seen for _, seen in pairs]
        for seen in layers:
            seen.__class__ = Shifted
            seen.cell = None
        means = [other.features(each)[0][0].mean(axis=0) for each in ids]
        assert data["cosine"] == pytest.approx(cosine(*means).real, rel=1e-12)

        def slope(layer, number, cell):
            layers[layer].cell = cell
            moved = other.features(ids[number])[0][0].mean(axis=0)
            layers[layer].cell = None
            return cosine(moved, means[1 - number]).imag / STEP

        for place, found in enumerate(data["maps"]):
            number, layer = divmod(place, 2)
            products = found["products"]
            assert np.abs(products).max() > 1e-4
            for flat in rng.choice(products.size, 12, replace=False):
                cell = np.unravel_index(flat, products.shape)
                assert products[cell] == pytest.approx(slope(layer, number, cell), rel=1e-9, abs=1e-14), (place, cell)
            for head in range(4):
                assert products[head].sum() == pytest.approx(slope(layer, number, (head,)), rel=1e-9, abs=1e-14)


def test_two_sentences_are_read_one_by_one_with_all_their_tokens():
    model = bert()
    data = sentences_data(model, LETTERS, " a  cat", "pets slept")
    assert data["tokens"] == {"first": ["<bos>", *"a▁cat"], "second": ["<bos>", *"pets▁slept"]}
    names = [(each["stack"], each["layer"], each["rows"], each["keys"]) for each in data["maps"]]
    assert names == [(name, layer, name, name) for name in ("first", "second") for layer in (1, 2)]
    for number, text in enumerate(SENTENCES):
        right = model.attention_weights(np.array([[BOS, *LETTERS.encode(text)]]))
        for found, weights in zip(data["maps"][2 * number :], right, strict=False):
            np.testing.assert_allclose(found["weights"], weights[0], rtol=1e-3)
    one, other = embeddings(model, LETTERS, SENTENCES)
    assert data["cosine"] == pytest.approx(one @ other, abs=1e-6)
    assert data["title"] == f"cosine {one @ other:.3f}: a cat ↔ pets slept"
    assert all(not parameter.grad.any() for parameter in model.parameters())


@pytest.mark.parametrize(
    ("sentences", "message"),
    [
        (("a cat", " "), "the second sentence is empty"),
        (("a" * 40, "a cat"), "the first sentence has more than 40 tokens"),
        (("a cat", "a cat"), "both sentences have the same tokens: their cosine is 1, and its gradient 0 everywhere"),
    ],
)
def test_sentences_without_a_gradient_or_a_place_on_the_page_are_refused(sentences, message):
    with pytest.raises(ValueError, match=message):
        sentences_data(bert(), LETTERS, *sentences)


def test_two_sentences_need_a_bert_with_full_attention():
    with pytest.raises(ValueError, match="full attention, and this model has attention = tiled"):
        sentences_data(bert(attention="tiled"), LETTERS, *SENTENCES)


def flat_weights(model, inputs):
    found = model.attention_weights(*inputs)
    return found if isinstance(model, GPT) else [*found.encoder, *found.decoder, *found.cross]


@pytest.mark.parametrize("make", KINDS.values(), ids=KINDS)
def test_weights_are_those_of_the_forward_pass(make):
    model = make(np.float64)
    data = attention_data(model, toy_writing("reverse"), [5, 9, 3], [4, 8])
    if isinstance(model, GPT):
        inputs = (np.array([[5, 9, 3, EOS, 4, 8]]),)
    else:
        start = model.config.start
        inputs = (np.array([[5, 9, 3, EOS]]), np.array([[start, 4, 8]]))
    right = flat_weights(model, inputs)
    assert len(data["maps"]) == len(right) == (2 if isinstance(model, GPT) else 6)
    for found, weights in zip(data["maps"], right, strict=True):
        np.testing.assert_allclose(found["weights"], weights[0], rtol=1e-3, err_msg=str(found["stack"]))


@pytest.mark.parametrize("make", KINDS.values(), ids=KINDS)
def test_the_sum_of_logarithms_is_that_of_the_written_tokens(make):
    model = make(np.float64)
    inputs, targets = example(model)
    source = inputs[0][0, :4] if isinstance(model, GPT) else inputs[0][0]
    target = targets[0][targets[0] != PAD]
    if not isinstance(model, GPT):
        target = target[:-1]  # without eos
        inputs = (inputs[0], np.where(inputs[1] == BOS, model.config.start, inputs[1]))
    data = attention_data(model, ids_writing(29), source.tolist(), target.tolist())
    assert data["log_probability"] == pytest.approx(log_probability(model, inputs, targets))


def test_without_an_answer_the_model_writes_one():
    model = KINDS["paper"](np.float32)
    data = attention_data(model, toy_writing("reverse"), [5, 9, 3])
    written = greedy_decode(model, np.array([[5, 9, 3, EOS]]), LONGEST)[0]
    names = toy_writing("reverse").tokens
    assert data["writes"] == [names[id] for id in written]
    assert data["tokens"] == {"source": ["c", "g", "a", "eos"], "target": ["bos", *data["writes"][:-1]]}
    assert data["title"].startswith("cga → ")


def test_a_gpt_continues_a_text_and_its_prompt_counts_for_nothing():
    data = attention_data(KINDS["GPT"](np.float32), ids_writing(29), [5, 9, 3])
    assert data["writes"][:2] == [None, None]
    assert None not in data["writes"][2:]
    assert len(data["tokens"]["target"]) == len(data["writes"]) == 3 + CONTINUED - 1
    assert {each["stack"] for each in data["maps"]} == {"decoder"}
    assert np.shape(data["maps"][0]["products"]) == (4, 14, 14)


def test_the_attention_of_a_model_is_put_back():
    model = KINDS["paper"](np.float32)
    kinds = [layer.self_attention.sublayer.kind for layer in model.encoder.layers]
    attention_data(model, ids_writing(29), [5])
    assert [layer.self_attention.sublayer.kind for layer in model.encoder.layers] == kinds
    assert all(not parameter.grad.any() for parameter in model.parameters())


@pytest.mark.parametrize(
    ("make", "source", "target", "message"),
    [
        (KINDS["paper"], [5] * 41, None, "the source has 41 tokens, and the attention view shows from 1 to 40"),
        (KINDS["GPT"], [5] * 40, None, "the source has 40 tokens, and the attention view shows from 1 to 39"),
        (KINDS["paper"], [], None, "the source has 0 tokens"),
        (KINDS["paper"], [5], [5] * 40, "the answer has 41 tokens, its end included, and 40 fit at most"),
        (KINDS["GPT"], [5] * 30, [5] * 11, "the answer has 11 tokens, its end included, and 10 fit at most"),
    ],
)
def test_more_than_forty_tokens_are_refused(make, source, target, message):
    with pytest.raises(ValueError, match=message):
        attention_data(make(np.float32), ids_writing(29), source, target)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (BERT(bert_config(29, **SIZES)), "the attention of Transformers and GPTs, not of a BERT"),
        (GPT(gpt_config(29, **SIZES, attention="tiled")), "full attention, and this model has attention = tiled"),
        (GPT(gpt_config(29, **SIZES, share_layers=True)), "and this model's layers are one"),
    ],
)
def test_other_models_are_refused(model, message):
    with pytest.raises(ValueError, match=message):
        check_attention(model)


def test_its_page_is_another_one_with_the_same_name(tmp_path):
    data = attention_data(KINDS["paper"](np.float32), ids_writing(29), [5])
    write_page(data, tmp_path / "page")
    html = (tmp_path / "page" / "index.html").read_text("utf-8")
    assert "views/attention.js" in html
    assert html == page_files("attention")["index.html"].read_text("utf-8")
    assert "views/attention.js" not in page_files()["index.html"].read_text("utf-8")
    assert (tmp_path / "page" / "data.js").read_text("utf-8") == data_text(data)

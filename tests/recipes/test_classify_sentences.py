"""Labels of sentences: probabilities that depend on the sentence alone."""

import numpy as np

from minitransformer.data.labelled import encode_sentences
from minitransformer.models import BERT, bert_config
from minitransformer.recipes import classify as module
from minitransformer.recipes.classify import classify
from minitransformer.tokenizers import CharacterTokenizer
from minitransformer.vocabulary import BOS, PAD
from tests.helpers import randomize

TOKENIZER = CharacterTokenizer.train("abcdefg")
SENTENCES = ["abc", "a", "gfedcba", "ggg", "ab"]


def test_sentences_get_bos_and_padding_and_are_cut():
    a, b, c = TOKENIZER.encode("abc")
    np.testing.assert_array_equal(encode_sentences(TOKENIZER, ["a", "abc"], 3), [[BOS, a, PAD], [BOS, a, b]])
    np.testing.assert_array_equal(encode_sentences(TOKENIZER, ["abc"], 9), [[BOS, a, b, c]])


def test_probabilities_are_those_of_each_sentence_alone_and_class_0_has_none(monkeypatch):
    sizes = {"d_model": 12, "num_heads": 2, "d_ff": 20, "num_layers": 2, "max_len": 6, "dropout": 0.3}
    model = randomize(BERT(bert_config(TOKENIZER.vocab_size, **sizes), num_classes=5, dtype=np.float64))
    model.head.classes.b.data[0] = 100.0  # of padding
    p = classify(model, TOKENIZER, SENTENCES)
    assert p.shape == (5, 4)
    np.testing.assert_allclose(p.sum(axis=1), 1)
    monkeypatch.setattr(module, "AT_A_TIME", 1)
    np.testing.assert_allclose(classify(model, TOKENIZER, SENTENCES), p, atol=1e-12)

"""Embeddings of sentences, whatever they are read together with; and the share of each word in a cosine."""

import numpy as np
import pytest

from minitransformer.models import BERT, bert_config
from minitransformer.recipes import sentences
from minitransformer.recipes.sentences import embeddings, word_pairs
from minitransformer.tokenizers import CharacterTokenizer, WordPieceTokenizer
from minitransformer.tokenizers.word_piece import SPECIAL
from tests.helpers import host, randomize

PIECES = WordPieceTokenizer([*SPECIAL, "cat", "##s", "sleep", "the", "sofa", "##ly", "."])
CHARACTERS = CharacterTokenizer.train("abcdef ")
TEXTS = ["the cats sleep.", "sofa", "", "cat the cats sofaly . sleep the sofa", "the cats sleep."]


def build(tokenizer, **changes):
    options = {"d_model": 12, "num_heads": 3, "d_ff": 7, "num_layers": 2, "max_len": 20, "dropout": 0.3}
    config = bert_config(tokenizer.vocab_size + 1, **{**options, **changes})
    return randomize(BERT(config, num_classes=0, dtype=np.float64), scale=0.4)


def naive_embedding(model, ids):
    mean = host(model.features(np.array([ids]))[0])[0].mean(axis=0)
    return mean / np.linalg.norm(mean)


@pytest.mark.parametrize("positions", [1, 20, 1024])
def test_each_embedding_is_the_mean_of_the_sentence_read_alone(positions, monkeypatch):
    monkeypatch.setattr(sentences, "POSITIONS", positions)
    model = build(PIECES)
    expected = [naive_embedding(model, PIECES.encode_pair(text).ids) for text in TEXTS]
    np.testing.assert_allclose(embeddings(model, PIECES, TEXTS), expected, atol=1e-12)


def test_our_own_tokens_begin_with_the_start_and_long_sentences_are_cut():
    model = build(CHARACTERS, max_len=6)
    expected = [naive_embedding(model, [1, *CHARACTERS.encode(text)][:6]) for text in ("abcdefabc", "fa")]
    np.testing.assert_allclose(embeddings(model, CHARACTERS, ["abcdefabc", "fa"]), expected, atol=1e-12)


def test_the_shares_of_all_pairs_of_words_add_up_to_the_cosine():
    model = build(PIECES)
    first, second, shares = word_pairs(model, PIECES, TEXTS[0], TEXTS[3])
    assert first == ["[CLS]", "the", "cats", "sleep", ".", "[SEP]"]
    assert second == ["[CLS]", "cat", "the", "cats", "sofaly", ".", "sleep", "the", "sofa", "[SEP]"]
    one, other = embeddings(model, PIECES, [TEXTS[0], TEXTS[3]])
    assert shares.sum() == pytest.approx(one @ other, abs=1e-12)
    y = host(model.features(PIECES.encode_pair(TEXTS[0]).ids[None])[0])[0]
    mean = np.linalg.norm(y.mean(axis=0)) * len(y)
    np.testing.assert_allclose(
        shares.sum(axis=1)[[1, 2]], [y[1] @ other / mean, (y[2] + y[3]) @ other / mean], atol=1e-12
    )
    assert word_pairs(model, PIECES, TEXTS[1], TEXTS[1]).shares.sum() == pytest.approx(1, abs=1e-12)

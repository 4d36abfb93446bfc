"""Translating sentences: what the search is given, and what becomes of its answers."""

from types import SimpleNamespace

import numpy as np
import pytest

from minitransformer.decoding import beam_search, decoding_state
from minitransformer.decoding.search.translate import batches, find_translations, translate
from minitransformer.models import Seq2Seq, Seq2SeqConfig, Transformer, TransformerConfig
from minitransformer.tokenizers import BytePairTokenizer
from tests.decoding.scripted import BOS, EOS, PAD
from tests.helpers import randomize

pytestmark = pytest.mark.host_only
TOKENIZER = BytePairTokenizer.train("der hund sieht den könig und der könig sieht den hund " * 3, 280)
SENTENCES = ["der König sieht den Hund", "", "hund", "und der hund sieht den hund und den könig", "könig hund"]
CONFIGS = {
    "transformer": (
        Transformer,
        TransformerConfig(TOKENIZER.vocab_size, d_model=8, num_heads=2, d_ff=12, num_layers=1, max_len=70),
    ),
    "seq2seq": (Seq2Seq, Seq2SeqConfig(TOKENIZER.vocab_size, d_model=6, hidden_size=8, num_layers=1, max_len=70)),
}


class Echo:
    """A model that repeats its source `times` times. It keeps the shapes of what it was given."""

    def __init__(self, max_len=1000, times=1):
        self.config = SimpleNamespace(max_len=max_len)
        self.times, self.given = times, []

    def forward(self, source, target):
        if target.shape[1] == 1:
            self.given.append(source.shape)
        logits = np.zeros((*target.shape, TOKENIZER.vocab_size))
        for row, ids in enumerate(source.tolist()):
            answer = [id for id in ids if id not in (PAD, EOS)] * self.times + [EOS]
            said = np.minimum(np.arange(target.shape[1]), len(answer) - 1)
            logits[row, np.arange(len(said)), np.array(answer)[said]] = 20.0
        return logits

    __call__ = forward


def random_model(kind):
    model_class, config = CONFIGS[kind]
    return randomize(model_class(config, dtype=np.float64))


def test_one_string_is_refused_because_its_letters_are_no_sentences():
    with pytest.raises(TypeError, match=r"^sentences must be several, such as \['guten Tag'\], got one string$"):
        translate(Echo(), TOKENIZER, "guten Tag")


@pytest.mark.parametrize("beam", [1, 3])
def test_each_translation_stands_where_its_sentence_stands(beam):
    model = Echo()
    assert translate(model, TOKENIZER, SENTENCES, beam) == SENTENCES
    assert translate(model, TOKENIZER, SENTENCES[::-1], beam) == SENTENCES[::-1]
    assert translate(model, TOKENIZER, [], beam) == []


def test_sentences_of_about_the_same_length_are_a_batch_and_empty_ones_are_not_read(monkeypatch):
    model, done, limits = Echo(), [], []

    def state_of(model, source, max_new_tokens):
        limits.append(max_new_tokens)
        return decoding_state(model, source, max_new_tokens)

    monkeypatch.setattr("minitransformer.decoding.search.translate.decoding_state", state_of)
    sentences = ["hund", "", " \t", *["der hund sieht den hund und den könig " * 3] * 5, "und"]
    lengths = [len(TOKENIZER.encode(sentence)) + 1 for sentence in sentences]
    translate(model, TOKENIZER, sentences, 2, batch_tokens=400, on_progress=done.append)
    limit = max(lengths) + 50
    assert len({rows for rows, _ in model.given}) > 1
    assert sum(rows for rows, _ in model.given) == 7
    assert all(rows * 2 * limit <= 400 or rows == 1 for rows, length in model.given if length == max(lengths))
    assert limits == [length + 50 for _, length in model.given]
    assert sum(done) == len(sentences)
    assert len(done) == len(model.given) + 1


@pytest.mark.parametrize(("batch_tokens", "expected"), [(360, [[0, 1, 2], [3]]), (359, [[0, 1], [2, 3]])])
def test_a_batch_may_have_exactly_batch_tokens(batch_tokens, expected):
    assert list(batches([10] * 4, 2, 100, batch_tokens)) == expected  # 2 (10 + 50) tokens for each sentence


@pytest.mark.parametrize("beam", [1, 3])
def test_a_translation_has_at_most_50_tokens_more_than_its_source_and_never_more_than_the_model_can_write(beam):
    sentence = "der hund sieht den könig"
    length = len(TOKENIZER.encode(sentence)) + 1
    for max_len, expected in ((1000, length + 50), (length + 7, length + 7), (length, length)):
        (found,) = find_translations(Echo(max_len, times=100), TOKENIZER, [sentence], beam)
        assert len(found.ids) == expected
        assert EOS not in found.ids


@pytest.mark.parametrize("beam", [1, 3])
@pytest.mark.parametrize("kind", CONFIGS)
def test_beam_search_and_its_scores_are_those_of_each_sentence_alone(kind, beam):
    model, alpha = random_model(kind), 0.9
    for got, sentence in zip(find_translations(model, TOKENIZER, SENTENCES, beam, alpha), SENTENCES, strict=True):
        ids = np.array([[*TOKENIZER.encode(sentence), EOS]])
        if ids.shape[1] == 1:
            assert got == ("", (), 0.0, 0.0)
            continue
        limit = min(ids.shape[1] + 50, 70)
        ((best, *_),) = beam_search(decoding_state(model, ids, limit), 1, limit, BOS, beam, alpha if beam > 1 else 0.0)
        assert got.ids == best.ids
        assert abs(got.log_prob - best.log_prob) <= 1e-9 * abs(best.log_prob)
        assert abs(got.score - best.score) <= 1e-9 * abs(best.score)
        assert got.text == " ".join(TOKENIZER.decode(best.ids).split())


def test_a_translation_is_one_line_whatever_the_model_writes():
    tokenizer = BytePairTokenizer()
    assert translate(Echo(), tokenizer, ["a\nb \t c\u2028d "]) == ["a b c d"]


def test_a_sentence_longer_than_the_model_reads_is_refused_with_both_numbers():
    count = len(TOKENIZER.encode("hund " * 20)) + 1
    message = f"^the sentence 'hund hund hund hund hund hund...' has {count} tokens, end token included, and this model"
    with pytest.raises(ValueError, match=f"{message} reads at most {count - 1}$"):
        translate(Echo(count - 1), TOKENIZER, ["hund", "hund " * 20])
    assert len(translate(Echo(count), TOKENIZER, ["hund", "hund " * 20])) == 2


@pytest.mark.parametrize("name", ["beam", "batch_tokens"])
def test_a_beam_or_batch_of_0_is_refused(name):
    with pytest.raises(ValueError, match=f"^{name} must be at least 1, got 0$"):
        translate(Echo(), TOKENIZER, ["hund"], **{name: 0})
    with pytest.raises(ValueError, match=f"^{name} must be at least 1, got 0$"):
        translate(Echo(), TOKENIZER, ["", " "], **{name: 0})

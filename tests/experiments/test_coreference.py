"""Coreference: the sentences, where heads look, and the rows that are turned."""

import numpy as np
import pytest

from experiments import coreference
from experiments.coreference import FRAMES, NOUNS, VOCABULARY, Sentence, as_batch, draw_sentence
from minitransformer.models import BERT, bert_config

SENTENCE = Sentence(["the", "ball", "cannot", "carry", "the", "box", "because", "it", "is", "too", "weak"], 7, 1, 5)


def model():
    """A model whose weights are large enough for rows of attention that differ."""
    made = BERT(bert_config(len(VOCABULARY), **{**coreference.SIZES, "d_model": 8, "d_ff": 4}), dtype=np.float64)
    rng = np.random.default_rng(3)
    for parameter in made.parameters():
        parameter.data[...] = rng.standard_normal(parameter.data.shape)
    return made


def sentences(count, held_out=True):
    rng = np.random.default_rng(1)
    return [draw_sentence(rng, held_out) for _ in range(count)]


def test_the_last_word_says_which_of_the_two_nouns_it_is():
    for words, it, antecedent, other in sentences(200):
        text, two = " ".join(words), sorted((antecedent, other))
        ((frame, adjectives),) = ((frame, pair) for frame, pair in FRAMES.items() if f" {frame} " in text)
        assert words[it] == "it"
        assert two[0] < words.index(frame.split()[0]) < two[1]
        assert (antecedent < other) == (words[-1] == adjectives[0])
        assert {words[antecedent], words[other]} <= set(NOUNS)


def test_pairs_of_nouns_of_the_test_never_are_together_in_training():
    def pairs(held_out):
        return {tuple(s.words[i] for i in sorted((s.antecedent, s.other))) for s in sentences(700, held_out)}

    assert len(pairs(True)) > 50
    assert len(pairs(False)) > 200
    assert not pairs(True) & pairs(False)


def test_the_only_target_of_a_sentence_is_its_antecedent_at_it():
    drawn = sentences(20)
    batch = as_batch(drawn)
    for row, target, sentence in zip(batch.ids, batch.targets, drawn, strict=True):
        assert [VOCABULARY[id] for id in row if id] == sentence.words
        assert {i: VOCABULARY[id] for i, id in enumerate(target) if id} == {
            sentence.it: sentence.words[sentence.antecedent]
        }


def test_looks_are_means_over_the_sentences_of_the_row_at_it():
    made, drawn = model(), sentences(3)
    right, wrong, ahead = coreference.look(made, drawn)
    for head in range(8):
        pairs = []
        for sentence in drawn:
            row = made.attention_weights(as_batch([sentence]).ids)[head // 4][0, head % 4, sentence.it]
            pairs.append((row[sentence.antecedent], row[sentence.other]))
        assert right[head] == pytest.approx(np.mean([a for a, _ in pairs]))
        assert wrong[head] == pytest.approx(np.mean([b for _, b in pairs]))
        assert ahead[head] == pytest.approx(np.mean([a > b for a, b in pairs]))


def test_a_turned_row_has_all_its_weight_on_the_other_noun_and_no_other_row_is_turned():
    path = "encoder.layers.1.self_attention.sublayer.output"
    turned = coreference.turn(path, [SENTENCE, *sentences(2)], 4, [2])
    assert turned.path == "encoder.layers.1.self_attention.sublayer"
    assert turned.weights[0, 0, 0].nonzero()[0].tolist() == [5]
    assert turned.weights.sum() == 3
    assert [place[:2].tolist() for place in np.argwhere(turned.queries)] == [[0, 2], [1, 2], [2, 2]]
    assert turned.queries[0, 2, 7]


def test_answers_are_read_at_it_and_change_with_the_rows():
    made, drawn = model(), sentences(60)
    shares = coreference.answers(made, drawn)
    said = made(as_batch(drawn).ids).argmax(axis=-1)
    read = [VOCABULARY[row[sentence.it]] for row, sentence in zip(said, drawn, strict=True)]
    assert shares["right"] == np.mean([word == s.words[s.antecedent] for word, s in zip(read, drawn, strict=True)])
    assert shares["other"] == np.mean([word == s.words[s.other] for word, s in zip(read, drawn, strict=True)])

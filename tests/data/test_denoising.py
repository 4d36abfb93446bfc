"""Broken text: what is hidden, how often and where, which sentences move, and that the target is the text itself."""

import numpy as np
import pytest

from minitransformer.data import Corpus, PairCorpus, TranslationTask
from minitransformer.data.denoising import DenoisingTask, infill, passages
from minitransformer.data.translation import MAX_LEN
from minitransformer.decoding.search.translate import encode_source
from minitransformer.tokenizers import BytePairTokenizer
from minitransformer.vocabulary import BOS, EOS, PAD

WORDS = ("the", "old", "king", "sees", "a", "red", "bird", "and", "two", "rivers")
TOKENIZER = BytePairTokenizer.train(" ".join(WORDS) * 20, 300)


def prose(sentences=120, seed=0):
    """Sentences of 1 to 9 words, of which no two are equal."""
    rng = np.random.default_rng(seed)
    lines = (
        f"{i} {' '.join(rng.choice(WORDS, rng.integers(1, 10)))}{rng.choice(list('.!?:'))}" for i in range(sentences)
    )
    return " ".join(lines)


def make_task(noise="both", length=80, text=None):
    return DenoisingTask(Corpus(text or prose(), prose(30, seed=1)), TOKENIZER, length, noise)


class Drawn:
    """A generator that draws these span lengths first."""

    def __init__(self, lengths, seed=0):
        self.lengths, self.permutation = lengths, np.random.default_rng(seed).permutation

    def poisson(self, mean, count):
        assert mean == 3
        return np.array(self.lengths[:count])


def in_loops(rng, ids):
    """One piece at a time: a token that stays, or a mask for a span."""
    hidden, lengths = round(0.3 * len(ids)), []
    for length in rng.poisson(3.0, hidden):
        if sum(lengths) < hidden:
            lengths.append(min(int(length), hidden - sum(lengths)))
    order = rng.permutation(len(ids) - sum(lengths) + len(lengths))
    spans, rest, pieces = list(rng.permutation(lengths)), list(ids), []
    for number in order:
        if number < len(lengths):
            pieces.append(BOS)
            del rest[: int(spans.pop(0))]
        else:
            pieces.append(rest.pop(0))
    assert not rest
    return pieces


@pytest.mark.parametrize("length", [1, 2, 3, 7, 20, 64, 301])
def test_spans_become_masks_as_in_plain_loops(length):
    ids = np.arange(10, 10 + length)
    for seed in range(20):
        found = infill(np.random.default_rng(seed), ids)
        assert found.tolist() == in_loops(np.random.default_rng(seed), ids)


def test_a_span_of_length_0_inserts_a_mask_and_the_last_one_is_cut_off():
    ids = np.arange(10, 20)  # three are to be hidden
    zeros = infill(Drawn([0, 0, 0]), ids)
    assert zeros[zeros != BOS].tolist() == ids.tolist()
    assert (zeros == BOS).sum() == 3
    long = infill(Drawn([9, 9, 9]), ids)
    assert (len(long), (long == BOS).sum()) == (8, 1)
    assert np.diff(long[long != BOS]).max(initial=0) in (1, 4)  # one gap, or none if the span is at an end


def test_spans_have_three_tokens_on_average_and_both_ends_are_hidden_equally_often():
    rng = np.random.default_rng(4)
    assert 900 < (infill(rng, np.arange(10, 10_010)) == BOS).sum() < 1100  # 3,000 tokens are hidden
    ids = np.arange(10, 30)
    stays = np.mean([np.isin(ids, infill(rng, ids)) for _ in range(1000)], axis=0)
    assert np.abs(stays - stays[::-1]).max() < 0.1  # five standard deviations
    assert stays[0] > 0.8 > 0.7 > stays[10]  # no span reaches across an end


def test_passages_are_consecutive_sentences_as_many_as_fit():
    text = "One two. Three!  Four\nfive six? Seven:\n\n eight nine\n\nten."
    assert passages(text, 20) == [["One two.", "Three!"], ["Four five six?"], ["Seven:", "eight nine"], ["ten."]]
    assert passages(text, 1000) == [["One two.", "Three!", "Four five six?", "Seven:", "eight nine", "ten."]]
    assert passages("a well-known aaa bbbbbbb", 8) == [["a well-k"], ["nown aaa"], ["bbbbbbb"]]
    assert passages(" \n\n", 9) == []


def sentences_of(ids):
    """The numbers of the sentences, which are their first words."""
    return sorted(word for word in TOKENIZER.decode(ids).split(" ") if word.isdigit())


@pytest.mark.parametrize("noise", ["both", "order", "infilling"])
def test_a_batch_is_the_passages_as_they_were_and_broken(noise):
    task = make_task(noise)
    texts, moved = {target for _, target in task.train.pairs}, 0
    for batch in task.epoch(np.random.default_rng(5), 200):
        assert batch.source.shape[1] <= MAX_LEN
        assert (batch.source != PAD).any(axis=0).all()
        for source, target_in, target in zip(*batch, strict=True):
            text, read = TOKENIZER.decode(target), source[(source != PAD) & (source != EOS)]
            texts.remove(text)
            assert source[(source != PAD)][-1] == EOS
            assert target_in[0] == BOS
            assert target_in[1:][target[1:] != PAD].tolist() == target[:-1][target[1:] != PAD].tolist()
            if noise == "order":
                assert sentences_of(read) == sentences_of(target)
                moved += TOKENIZER.decode(read) != text
            else:
                assert (read == BOS).any()
                kept = iter(TOKENIZER.decode(target))
                in_order = all(letter in kept for letter in TOKENIZER.decode(read))
                assert in_order or noise == "both"
                moved += not in_order
    assert not texts
    assert moved > 5 or noise == "infilling"


def test_training_breaks_a_passage_anew_in_every_epoch_and_the_test_never():
    task, rng = make_task(), np.random.default_rng(6)
    first, second = (
        {
            tuple(target[target != PAD]): source[source != PAD].tolist()
            for batch in task.epoch(rng, 200)
            for source, target in zip(batch.source, batch.target_out, strict=True)
        }
        for _ in range(2)
    )
    assert sum(first[target] != second[target] for target in first.keys() & second.keys()) > 0.9 * len(first) > 5
    again = make_task()
    assert task.test.pairs == again.test.pairs
    assert any("[MASK]" in broken for broken, _ in task.test.pairs)
    assert all(
        np.array_equal(a, b)
        for one, two in zip(task.test.ids, again.test.ids, strict=True)
        for a, b in zip(one, two, strict=True)
    )
    same = [[batch.source.tolist() for batch in task.epoch(np.random.default_rng(7), 200)] for task in (task, again)]
    assert same[0] == same[1]


def test_a_mask_is_read_in_a_source_alone():
    assert encode_source(TOKENIZER, "the[MASK] bird", 99).tolist() == [
        *TOKENIZER.encode("the"),
        BOS,
        *TOKENIZER.encode(" bird"),
        EOS,
    ]
    pair = ("[MASK]", "a [MASK]")
    task = TranslationTask(PairCorpus([pair], [pair], [pair]), TOKENIZER, 99)
    assert task.train.ids[0][0].tolist() == [BOS, EOS]
    assert task.train.ids[0][1].tolist() == [*TOKENIZER.encode("a [MASK]"), EOS]

"""Greedy decoding against a naive loop over single rows, and with a scripted model whose output is known."""

import numpy as np
import pytest

from minitransformer.decoding import greedy_decode
from minitransformer.models import Transformer, TransformerConfig
from minitransformer.vocabulary import BOS, EOS, PAD
from tests.helpers import device, host, randomize


def _greedy_one_row(model, source, max_new_tokens):
    """The definition: run the whole model on all tokens so far and append the most likely next token, until eos."""
    said = []
    while len(said) < max_new_tokens and EOS not in said:
        logits = host(model(np.array([source]), np.array([[BOS, *said]])))[0, -1].tolist()
        said.append(logits.index(max(logits)))
    return said


def _talkative_model(norm, seed):
    """Random weights with a different answer for each source; most random models repeat one token for ever."""
    sizes = {"d_model": 16, "num_heads": 2, "d_ff": 24, "num_layers": 1, "max_len": 24}
    config = TransformerConfig(vocab_size=7, norm=norm, tie_embeddings=False, **sizes)
    model = randomize(Transformer(config, seed=None, dtype=np.float64), seed, scale=0.4)
    for name, parameter in model.decoder.named_parameters():
        if name.endswith("beta"):
            parameter.data[...] = 0.0  # or else one token leads whatever was read
        if "cross_attention.sublayer" in name:
            parameter.data *= 2.0  # makes the source count
    return model


SOURCES = ["3456", "6", "554", "43", "336", "4", "56", "3", "6666", "543"]


@pytest.mark.parametrize(("norm", "seed"), [("post", 14), ("pre", 11), ("pre", 17)])
def test_greedy_equals_decoding_one_row_at_a_time_with_the_whole_model(norm, seed):
    model = _talkative_model(norm, seed)
    sources = [[*map(int, text), EOS] for text in SOURCES]
    expected = [_greedy_one_row(model, row, 9) for row in sources]
    assert len({tuple(row) for row in expected}) > 5, "the answers must differ, or else they prove little"
    assert len({len(row) for row in expected}) > 2, "and must end at different times"
    decoded = greedy_decode(model, np.array([row + [PAD] * (5 - len(row)) for row in sources]), 9)
    assert decoded.shape == (10, max(map(len, expected)))
    for got, row in zip(decoded.tolist(), expected, strict=True):
        assert got == row + [PAD] * (len(got) - len(row))


class ScriptedModel:
    """Says the lines of a script, whatever it reads, and prefers other tokens wherever the script says nothing."""

    def __init__(self, lines, vocab_size=9):
        self.lines = lines
        self.vocab_size = vocab_size
        self.begun = []  # (source, max_new_tokens) at each call of `decoding_state`
        self.read = []  # all tokens so far at each call of `extend`

    def decoding_state(self, source, max_new_tokens):
        self.begun.append((source.tolist(), max_new_tokens))
        self.prompt = np.full((len(source), 1), BOS, dtype=source.dtype)
        self.target = np.empty((len(source), 0), dtype=int)
        return self

    def extend(self, ids):
        assert ids.shape == (len(self.target), 1)
        self.target = np.concatenate([self.target, ids], axis=1)
        self.read.append(self.target.tolist())
        B, T = self.target.shape
        assert self.begun[-1][1] >= T, "more tokens than were announced"
        logits = np.random.default_rng(T).random((B, self.vocab_size))
        for b, line in enumerate(self.lines):
            logits[b, line[min(T, len(line)) - 1]] = 2.0
        return device(logits)


SOURCE = np.array([[3, 4, EOS], [5, EOS, PAD], [6, EOS, PAD]])


def test_source_is_read_once_and_each_step_reads_one_more_token_from_bos_on():
    model = ScriptedModel([[4, 3, EOS], [5, EOS], [6, 7, 8]])
    greedy_decode(model, SOURCE, 3)
    assert model.begun == [(SOURCE.tolist(), 3)]
    assert model.read == [
        [[BOS], [BOS], [BOS]],
        [[BOS, 4], [BOS, 5], [BOS, 6]],
        [[BOS, 4, 3], [BOS, 5, EOS], [BOS, 6, 7]],
    ]

"""Greedy decoding against a naive loop over single rows, and with a scripted model whose output is known."""

import numpy as np
import pytest

from minitransformer.decoding import greedy_decode
from minitransformer.models import Transformer, TransformerConfig
from minitransformer.vocabulary import BOS, EOS, PAD
from tests.helpers import host, randomize


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

"""The vectors of tokens, positions and segments begin with the sizes that their papers give, or that fit each other."""

import math

import numpy as np
import pytest

from minitransformer.models import (
    BERT,
    GPT,
    ConvConfig,
    ConvLM,
    Seq2Seq,
    Seq2SeqConfig,
    Transformer,
    TransformerConfig,
    bert_config,
    gpt_config,
)
from tests.helpers import host, same

V, C, MAX_LEN = 300, 48, 200
SIZES = {"d_model": C, "num_heads": 3, "d_ff": 7, "num_layers": 1, "max_len": MAX_LEN}
ROOT = 1 / math.sqrt(C)


def transformer(**changes):
    config = TransformerConfig(V, **SIZES, positions="learned", tie_embeddings=False, **changes)
    return Transformer(config)


def gpt(**changes):
    return GPT(gpt_config(V, **{**SIZES, **changes}, tie_embeddings=False))


# how to build the model, and {name of an array: its standard deviation}
CASES = {
    "Transformer": (
        transformer,
        {  # times sqrt(C) the tokens have the size 1, and the positions as well
            "source_embedding.tokens.E": ROOT,
            "target_embedding.tokens.E": ROOT,
            "output.E": ROOT,
            "source_embedding.positions.P": 1.0,
            "target_embedding.positions.P": 1.0,
        },
    ),
    "Transformer, not scaled": (
        lambda: transformer(scale_embeddings=False),
        {
            "source_embedding.tokens.E": ROOT,
            "target_embedding.tokens.E": ROOT,
            "output.E": ROOT,
            "source_embedding.positions.P": ROOT,
            "target_embedding.positions.P": ROOT,
        },
    ),
    "GPT": (gpt, {"embedding.tokens.E": 0.02, "embedding.positions.P": 0.02, "output.E": 0.02}),
    "GPT, scaled": (
        lambda: gpt(scale_embeddings=True),
        {"embedding.tokens.E": ROOT, "embedding.positions.P": 1.0, "output.E": ROOT},
    ),
    "BERT": (
        lambda: BERT(bert_config(V, **SIZES), num_segments=40),
        {"embedding.tokens.E": 0.02, "embedding.positions.P": 0.02, "embedding.segments.E": 0.02},
    ),
    "ConvLM": (
        lambda: ConvLM(ConvConfig(V, d_model=C, num_layers=1, tie_embeddings=False)),
        {"embedding.tokens.E": ROOT, "output.E": ROOT},  # times sqrt(C) the tokens have the size 1
    ),
    "Seq2Seq": (
        lambda: Seq2Seq(Seq2SeqConfig(V, d_model=C, hidden_size=25)),
        {"source_embedding.tokens.E": 1.0, "target_embedding.tokens.E": 1.0, "output.E": 0.2},
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_vectors_begin_with_their_sizes_and_none_is_left_out(name):
    build, expected = CASES[name]
    arrays = {name: host(parameter.data) for name, parameter in build().named_parameters()}
    assert {name for name in arrays if name.endswith((".E", ".P"))} == expected.keys()
    for array, std in expected.items():
        assert 0.93 * std < arrays[array].std() < 1.07 * std, array
        assert abs(arrays[array].mean()) < 0.1 * std, array


# every class, and what it is made for
MADE = {
    "Transformer": (Transformer, TransformerConfig(V, **SIZES), {}),
    "GPT": (GPT, gpt_config(V, **SIZES), {}),
    "BERT": (BERT, bert_config(V, **SIZES), {}),
    "BERT, classes": (BERT, bert_config(V, **SIZES), {"num_classes": 5}),
    "ConvLM": (ConvLM, ConvConfig(V, d_model=C, num_layers=1, norm="pre"), {}),
    "Seq2Seq": (Seq2Seq, Seq2SeqConfig(V, d_model=C, hidden_size=24), {}),
}


@pytest.mark.parametrize("name", MADE)
def test_the_seed_chooses_the_weights_is_0_by_default_and_none_makes_matrices_of_zeros(name):
    kind, config, options = MADE[name]
    default, zero, again, other, empty = (
        kind(config, **options, **seed).state_dict()
        for seed in ({}, {"seed": 0}, {"seed": 0}, {"seed": 1}, {"seed": None})
    )
    for array in default:
        assert same(default[array], zero[array]), array
        assert same(again[array], zero[array]), array
        drawn = zero[array].std() > 0 and not array.endswith(".b")
        assert same(other[array], zero[array]) is not drawn, array
        assert not drawn or not empty[array].any(), array
    assert {array.dtype for array in default.values()} == {np.dtype(np.float32)}

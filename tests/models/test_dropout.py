"""In training every model has dropout in all the places of its paper, each with its own rate; otherwise in none."""

from collections import Counter

import numpy as np
import pytest

from minitransformer.functional.dropout import DropoutCache
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
from minitransformer.system.generators import make_generator
from tests.helpers import host

V = 11
IDS = np.array([[3, 8, 4, 6, 2], [7, 5, 9, 4, 10]])
SIZES = {"d_model": 12, "num_heads": 3, "d_ff": 7, "num_layers": 2, "max_len": 9}
RATES = {"dropout": 0.125, "attention_dropout": 0.25, "ffn_dropout": 0.5}  # multiples of 2^-16, so that they are exact
# for each rate: in how many places. Two layers; the embeddings, and the output of each sub-layer, have the first
PLACES = {
    "Transformer": (2 + 2 * 2 + 2 * 3, 2 + 2 * 2, 2 + 2),
    "GPT": (1 + 2 * 2, 2, 2),
    "BERT": (1 + 2 * 2, 2, 2),
    "BERT, classes": (1 + 2 * 2 + 1, 2, 2),  # and one before the classes
    "ConvLM": (1 + 2, 0, 0),
    "Seq2Seq": (2 * (1 + 1) + 1, 0, 0),  # in each stack on the tokens and between the layers, and before the output
}


def build(name):
    if name == "Transformer":
        return Transformer(TransformerConfig(V, **SIZES, **RATES))
    if name == "GPT":
        return GPT(gpt_config(V, **SIZES, **RATES))
    if name == "ConvLM":
        return ConvLM(ConvConfig(V, d_model=12, num_layers=2, dropout=RATES["dropout"]))
    if name == "Seq2Seq":
        return Seq2Seq(Seq2SeqConfig(V, d_model=12, hidden_size=14, num_layers=2, dropout=RATES["dropout"]))
    return BERT(bert_config(V, **SIZES, **RATES), num_classes=4 if "classes" in name else None)


def inputs(name):
    return (IDS, IDS[:, :4]) if name in ("Transformer", "Seq2Seq") else (IDS,)


def masks(cache):
    """Every dropout mask in a cache."""
    if isinstance(cache, DropoutCache):
        yield cache
    elif isinstance(cache, tuple | list):
        for part in cache:
            yield from masks(part)


@pytest.mark.parametrize("name", PLACES)
def test_each_place_has_dropout_of_its_own_rate_in_training(name):
    _, cache = build(name).forward(*inputs(name), rng=make_generator(3))
    found = list(masks(cache))
    assert Counter(1.0 - 1.0 / mask.scale for mask in found) == Counter(
        dict(zip(RATES.values(), PLACES[name], strict=True))
    )
    drawn = {host(mask.keep).tobytes() for mask in found if mask.keep.size >= 64}
    assert len(drawn) == sum(mask.keep.size >= 64 for mask in found), "each place draws a mask of its own"


@pytest.mark.parametrize("name", PLACES)
def test_no_place_has_dropout_in_evaluation(name):
    assert list(masks(build(name).forward(*inputs(name))[1])) == []

"""Ids that a model cannot read are refused by the name of the argument, whatever the model."""

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

V, MAX_LEN = 11, 20
SIZES = {"d_model": 12, "num_heads": 3, "d_ff": 7, "num_layers": 1, "max_len": MAX_LEN}
GOOD = np.array([[3, 8, 4], [7, 5, 9]])
MODELS = {
    "Transformer": lambda: Transformer(TransformerConfig(V, **SIZES)),
    "GPT": lambda: GPT(gpt_config(V, **SIZES)),
    "BERT": lambda: BERT(bert_config(V, **SIZES)),
    "ConvLM": lambda: ConvLM(ConvConfig(V, d_model=12, num_layers=1)),
    "Seq2Seq": lambda: Seq2Seq(Seq2SeqConfig(V, d_model=12, hidden_size=8, max_len=MAX_LEN)),
}
PAIRS = ("Transformer", "Seq2Seq")  # the models that read a source and a target
ARGUMENTS = [
    *((model, which) for model in PAIRS for which in ("source", "target")),
    *((model, "ids") for model in MODELS if model not in PAIRS),
]
every_argument = pytest.mark.parametrize(("model", "which"), ARGUMENTS)
UNREADABLE = [
    (np.array([[3, -1], [4, 5]]), IndexError, "has the token id -1, but the vocabulary has the ids 0 to 10"),
    (np.array([[3, 4], [V, 5]]), IndexError, "has the token id 11, but the vocabulary has the ids 0 to 10"),
    (np.array([[3, 4], [10**6, 5]]), IndexError, "has the token id 1000000, but the vocabulary has the ids 0 to 10"),
    (GOOD * 1.0, TypeError, "must be integer token ids, got an array of float64"),
    (GOOD.tolist(), TypeError, "must be an array of integer token ids, got list"),
    (GOOD[0], ValueError, r"must be a batch of sequences of shape \(B, T\), got \(3,\)"),
    (np.zeros((0, 4), int), ValueError, r"is empty: got token ids of shape \(0, 4\)"),
    (np.zeros((2, 0), int), ValueError, r"is empty: got token ids of shape \(2, 0\)"),
]


def read(model, which, ids):
    """The logits of a model with one of its arguments replaced."""
    names = ("source", "target") if model in PAIRS else ("ids",)
    return MODELS[model]()(*(ids if name == which else np.full((2, 4), 3) for name in names))


@every_argument
@pytest.mark.parametrize(("ids", "error", "message"), UNREADABLE, ids=[row[2][:30] for row in UNREADABLE])
def test_ids_that_no_model_can_read_are_refused_by_their_name(model, which, ids, error, message):
    with pytest.raises(error, match=f"^{which} {message}$"):
        read(model, which, ids)


@every_argument
def test_the_longest_sequence_fits_and_a_longer_one_is_refused_unless_no_sequence_is_too_long(model, which):
    assert read(model, which, np.full((2, MAX_LEN), 3)).shape[0] == 2
    longer = np.full((2, MAX_LEN + 1), 3)
    if model == "ConvLM":
        assert read(model, which, longer).shape == (2, MAX_LEN + 1, V)
    else:
        with pytest.raises(ValueError, match=f"^{which} is 21 tokens long, but the model has only 20 positions"):
            read(model, which, longer)


@pytest.mark.parametrize("model", PAIRS)
@pytest.mark.parametrize("count", [1, 3])
def test_different_numbers_of_sources_and_targets_are_refused(model, count):
    with pytest.raises(ValueError, match=f"must have the same batch size, got 2, {count} and 2 sequences"):
        MODELS[model]()(GOOD, np.full((count, 4), 3))

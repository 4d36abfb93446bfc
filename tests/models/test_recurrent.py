"""A recurrent encoder-decoder in its four forms: what may influence what, decoding, saving, and its refusals."""

import numpy as np
import pytest

from minitransformer.config import SEQ2SEQ_ATTENTION
from minitransformer.decoding import decoding_state
from minitransformer.layers import GRU, LSTM
from minitransformer.models import Seq2Seq, Seq2SeqConfig
from minitransformer.models.before_2017.recurrent import reversed_order
from tests.helpers import host, randomize, relative_error, same
from tests.models.learning import loss_and_gradients
from tests.models.test_behaviour import pad

V, C, R = 11, 5, 6
SOURCE = np.array([[3, 8, 4, 0, 0], [7, 5, 9, 4, 10], [6, 6, 0, 0, 0]])
LENGTHS = (3, 5, 2)
TARGET_IN = np.array([[1, 3, 8, 4], [1, 7, 5, 0], [1, 6, 0, 0]])
TARGET_OUT = np.array([[3, 8, 4, 2], [7, 5, 2, 0], [6, 2, 0, 0]])
every_attention = pytest.mark.parametrize("attention", SEQ2SEQ_ATTENTION)
SWITCHES = [{"cell": "gru"}, {"bidirectional": True}, {"reverse_source": True}]
every_form = pytest.mark.parametrize(
    "fields",
    [
        *({"attention": attention} for attention in SEQ2SEQ_ATTENTION),
        *({"attention": "additive", **switch} for switch in SWITCHES),
        {"attention": "none", "cell": "gru", "bidirectional": True, "reverse_source": True},
    ],
    ids=lambda fields: "-".join(f"{name}={value}" for name, value in fields.items()),
)


def build(dtype=np.float64, **fields):
    """A model with order-one weights."""
    config = Seq2SeqConfig(V, **{"d_model": C, "hidden_size": R, "dropout": 0.0, "max_len": 20, **fields})
    return randomize(Seq2Seq(config, dtype=dtype), scale=0.5)


@pytest.mark.host_only
@every_form
def test_more_padding_changes_neither_loss_nor_gradients(fields):
    model = build(**fields)
    loss, gradients = loss_and_gradients(model, (SOURCE, TARGET_IN), TARGET_OUT)
    padded = loss_and_gradients(model, (pad(SOURCE, 3), pad(TARGET_IN, 2)), pad(TARGET_OUT, 2))
    assert relative_error(padded[0], loss) <= 1e-14
    for name, gradient in gradients.items():
        assert relative_error(padded[1][name], gradient) <= 1e-13, name


@every_form
def test_no_logits_depend_on_a_later_target_token(fields):
    model = build(**fields)
    logits, later = host(model(SOURCE, TARGET_IN)), TARGET_IN.copy()
    later[:, 2] = 9
    changed = host(model(SOURCE, later))
    assert same(changed[:, :2], logits[:, :2])
    assert not np.isclose(changed[:, 2], logits[:, 2]).all()


@every_form
def test_every_source_token_reaches_every_output_and_padding_none(fields):
    model = build(**fields)
    logits = host(model(SOURCE, TARGET_IN[:, :1]))
    for place in range(SOURCE.shape[1]):
        other = np.where((np.arange(5) == place) & (SOURCE != 0), 2, SOURCE)
        reached = (host(model(other, TARGET_IN[:, :1])) != logits).any(axis=(1, 2))
        assert reached.tolist() == [place < length for length in LENGTHS]


@pytest.mark.parametrize("pieces", [(1, 1, 1, 1), (3, 1)])
@every_form
def test_decoding_in_pieces_equals_the_whole(fields, pieces):
    model, end = build(**fields), 0
    state, expected = decoding_state(model, SOURCE, 9), host(model(SOURCE, TARGET_IN))
    for count in pieces:
        logits, end = state.extend(TARGET_IN[:, end : end + count]), end + count
        assert relative_error(host(logits), expected[:, end - 1]) <= 1e-12


@every_attention
def test_selected_rows_go_on_as_if_they_had_been_alone(attention):
    model, rows = build(attention=attention), [2, 0, 2]
    state = decoding_state(model, SOURCE, 9)
    state.extend(TARGET_IN[:, :2])
    state.select(rows)
    expected = host(model(SOURCE[rows], TARGET_IN[rows][:, :3]))[:, -1]
    assert relative_error(host(state.extend(TARGET_IN[rows][:, 2:3])), expected) <= 1e-12


@pytest.mark.parametrize("attention", [name for name in SEQ2SEQ_ATTENTION if name != "none"])
@pytest.mark.parametrize("reverse_source", [False, True])
def test_attention_weights_sum_to_one_over_the_tokens_of_the_source(attention, reverse_source):
    model = build(attention=attention, reverse_source=reverse_source)
    (weights,) = (host(w) for w in model.attention_weights(SOURCE, TARGET_IN).cross)
    assert weights.shape == (3, 1, 4, 5)
    assert relative_error(weights.sum(axis=-1), np.ones((3, 1, 4))) <= 1e-14
    assert same(weights > 0, np.broadcast_to((SOURCE != 0)[:, None, None], weights.shape))


def test_the_attention_weights_of_a_source_that_is_not_reversed_are_those_of_the_layer():
    model = build(attention="dot")
    (weights,) = model.attention_weights(SOURCE, TARGET_IN).cross
    assert same(weights[:, 0], model.features(SOURCE, TARGET_IN)[1].decode.attention.attention.weights)


@pytest.mark.parametrize("attention", ["none", "additive"])
def test_reading_the_source_reversed_equals_reading_a_reversed_source(attention):
    """The weights are in the order of the source as it was given."""
    model, other = build(attention=attention, reverse_source=True), build(attention=attention)
    reversed_rows = np.array([[4, 8, 3, 0, 0], [10, 4, 9, 5, 7], [6, 6, 0, 0, 0]])
    assert same(model(SOURCE, TARGET_IN), other(reversed_rows, TARGET_IN))
    if attention != "none":
        (got,), (expected,) = (
            m.attention_weights(ids, TARGET_IN).cross for m, ids in ((model, SOURCE), (other, reversed_rows))
        )
        for row, length in enumerate(LENGTHS):
            assert same(host(got)[row, ..., :length], host(expected)[row, ..., :length][..., ::-1])


def test_without_attention_there_are_no_weights_and_only_the_state_says_what_was_read():
    model = build(attention="none")
    assert model.attention_weights(SOURCE, TARGET_IN).cross == []
    encoded, _ = model.encode(SOURCE)
    y, cache = model.decode(TARGET_IN, encoded._replace(memory=encoded.memory * 0.0), SOURCE)
    assert same(model.head(y), model(SOURCE, TARGET_IN))
    dencoded = model.decode_backward(y, cache)
    assert not host(dencoded.memory).any()
    assert all(host(array).any() for array in dencoded.state)


def test_a_memory_of_another_batch_is_refused_instead_of_being_broadcast():
    model = build()
    encoded, _ = model.encode(SOURCE[:1])
    with pytest.raises(ValueError, match="must have the same batch size, got 3, 3 and 1 sequences"):
        model.decode(TARGET_IN, encoded, SOURCE)


def test_the_reversed_order_leaves_padding_where_it_is():
    assert reversed_order(SOURCE).tolist() == [[2, 1, 0, 3, 4], [4, 3, 2, 1, 0], [1, 0, 2, 3, 4]]


@pytest.mark.parametrize(("cell", "kind"), [("lstm", LSTM), ("gru", GRU)])
@pytest.mark.parametrize("bidirectional", [False, True])
def test_both_stacks_have_the_cell_and_the_encoder_alone_has_two_directions(cell, kind, bidirectional):
    model = build(cell=cell, bidirectional=bidirectional, hidden_size=8, num_layers=3)
    assert (type(model.encoder), type(model.decoder)) == (kind, kind)
    assert (len(model.encoder.directions), len(model.decoder.directions)) == (6 if bidirectional else 3, 3)


def test_token_vectors_are_not_scaled_in_the_input():
    model = build()
    for embedding, ids in ((model.source_embedding, SOURCE), (model.target_embedding, TARGET_IN)):
        assert same(embedding(ids), host(embedding.tokens.E.data)[ids])

"""The table of a model: every layer once, its real output shape, and counts that add up to the model's."""

import itertools

import numpy as np
import pytest

from minitransformer.backend import backend_name, use_backend
from minitransformer.inspection.activation_memory import kept_activations
from minitransformer.inspection.summary import summarize
from minitransformer.models import Seq2Seq, Seq2SeqConfig, Transformer, TransformerConfig

B, T, S, V, C, F, N = 2, 4, 5, 11, 12, 7, 2
SHAPES = {"(B, S, C)": (B, S, C), "(B, T, C)": (B, T, C), "(B, T, V)": (B, T, V)}
SWITCHES = list(itertools.product(("post", "pre"), (True, False), (None, True, False)))
every_switch = pytest.mark.parametrize(("norm", "tied", "final_norm"), SWITCHES)


def build(norm="post", tied=True, final_norm=None):
    """A model whose axes all have different lengths."""
    sizes = {"vocab_size": V, "d_model": C, "num_heads": 3, "d_ff": F, "num_layers": N, "max_len": 9}
    return Transformer(TransformerConfig(**sizes, norm=norm, tie_embeddings=tied, final_norm=final_norm))


def layer_at(model, path):
    """The layer that a path like "encoder.layers.0.norm" leads to."""
    for step in path.split("."):
        model = model[int(step)] if step.isdigit() else getattr(model, step)
    return model


@every_switch
def test_each_row_counts_the_parameters_of_its_own_layer(norm, tied, final_norm):
    model = build(norm, tied, final_norm)
    expected = {
        "SelfAttention": 4 * (C * C + C),
        "CrossAttention": 4 * (C * C + C),
        "FeedForward": C * F + F + F * C + C,
        "LayerNorm": 2 * C,
        "PositionalEncoding": 0,
    }
    for row in summarize(model):
        if row.kind in expected:
            assert row.parameters == expected[row.kind]
        else:  # the matrices of token vectors
            assert row.parameters == (0 if tied and not row.name.startswith("source") else V * C)


@every_switch
def test_the_rows_are_in_the_order_of_the_model_without_repeats(norm, tied, final_norm):
    rows = summarize(build(norm, tied, final_norm))
    has_final_norm = norm == "pre" if final_norm is None else final_norm
    encoder = ["SelfAttention", "LayerNorm", "FeedForward", "LayerNorm"]
    decoder = ["SelfAttention", "LayerNorm", "CrossAttention", "LayerNorm", "FeedForward", "LayerNorm"]
    last = ["LayerNorm"] if has_final_norm else []
    stacks = [*(N * encoder), *last, *(N * decoder), *last]
    expected = 2 * ["Embedding", "PositionalEncoding"] + stacks + ["OutputProjection"]
    assert [row.kind for row in rows] == expected
    assert [row.name for row in rows if row.shared] == (["target_embedding.tokens", "output"] if tied else [])
    assert len({row.name for row in rows}) == len(rows)


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_each_row_gives_the_kind_and_the_real_output_shape_of_its_layer(norm, monkeypatch):
    model = build(norm)
    for row in summarize(model):
        layer, shapes = layer_at(model, row.name), []

        def recorded(*inputs, forward=layer.forward, shapes=shapes, **options):
            y, cache = forward(*inputs, **options)
            shapes.append(y.shape)
            return y, cache

        with monkeypatch.context() as patch:
            patch.setattr(layer, "forward", recorded)
            model(np.full((B, S), 3), np.full((B, T), 3))
        assert type(layer).__name__ == row.kind
        # the positions are one layer, at the end of both embeddings
        assert SHAPES[row.output] in shapes, row.name
        assert len(shapes) == (2 if row.kind == "PositionalEncoding" else 1)


def test_the_table_of_kept_activations_is_the_same_on_every_backend():
    config, backend = build().config, backend_name()
    with use_backend("numpy"):
        expected = kept_activations(config, B, S, T)
    assert kept_activations(config, B, S, T) == expected
    assert backend_name() == backend
    assert len(expected) > 20


def test_a_recurrent_model_has_a_row_for_each_of_its_parts():
    model = Seq2Seq(Seq2SeqConfig(11, 6, 8, attention="additive"))
    rows = summarize(model)
    assert [(row.name, row.kind, row.output) for row in rows] == [
        ("source_embedding.tokens", "Embedding", "(B, S, C)"),
        ("target_embedding.tokens", "Embedding", "(B, T, C)"),
        ("encoder", "LSTM", "(B, S, R)"),
        ("decoder", "LSTM", "(B, T, R)"),
        ("attention", "MemoryAttention", "(B, T, R)"),
        ("output", "OutputProjection", "(B, T, V)"),
    ]
    assert sum(row.parameters for row in rows) == model.num_parameters()

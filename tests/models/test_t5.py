"""What T5 does otherwise than the paper's Transformer: its scales, its tables of distances, a start that is padding."""

import dataclasses

import numpy as np
import pytest

from minitransformer.decoding import decoding_state, generate_from
from minitransformer.functional import cross_entropy
from minitransformer.models import Transformer, TransformerConfig, t5_config
from tests.helpers import device, host, randomize, relative_error, same

V, H, C, F = 11, 3, 12, 7
SOURCE = np.array([[3, 8, 4, 0, 0], [7, 5, 9, 4, 10]])  # (B, S); 0 is padding
TARGET = np.array([[0, 6, 3, 8], [0, 5, 7, 9]])  # (B, T); begins with padding
V1_1 = {"activation": "geglu_tanh", "tie_embeddings": "inputs", "scale_output": False}
every_version = pytest.mark.parametrize("version", [{}, V1_1], ids=["1.0", "1.1"])


def build(seed=0, dtype="float64", **changes):
    """A model with its initial weights; all sizes differ from each other."""
    sizes = {"d_model": C, "num_heads": H, "d_ff": F, "num_layers": 2, "max_len": 200}
    return Transformer(t5_config(V, **{**sizes, **changes}), seed=seed, dtype=dtype)


def build_random(**changes):
    """A model with order-one weights."""
    return randomize(build(**changes), scale=0.4)


@every_version
def test_nothing_has_a_bias_and_each_stack_has_one_table_of_distances(version):
    names = [name for name, _ in build(**version).named_parameters()]
    assert not [name for name in names if name.endswith((".b", ".beta"))]
    assert [name for name in names if name.endswith("table")] == ["encoder.positions.table", "decoder.positions.table"]


def test_output_is_scaled_where_it_is_tied_and_has_a_matrix_of_its_own_in_version_1_1():
    model = build_random()
    z = host(decoded(model))
    E = host(model.source_embedding.tokens.E.data)
    assert same(model.source_embedding(SOURCE), E[SOURCE]), "token vectors are not scaled"
    assert model.output.E is model.target_embedding.tokens.E is model.source_embedding.tokens.E
    assert relative_error(model(SOURCE, TARGET), z @ E.T / np.sqrt(C)) <= 1e-14
    model = build_random(**V1_1)
    assert model.target_embedding.tokens.E is model.source_embedding.tokens.E is not model.output.E
    assert relative_error(model(SOURCE, TARGET), host(decoded(model)) @ host(model.output.E.data).T) <= 1e-14


def decoded(model):
    """What the decoder says of TARGET before the output projection (B, T, C)."""
    memory, _ = model.encode(SOURCE)
    seen = np.tril(np.ones((4, 4), bool))[None, None]
    padding = (SOURCE != 0)[:, None, None, :]
    return model.decoder(model.target_embedding(TARGET), memory, device(seen), device(padding))


@every_version
def test_the_padding_that_starts_the_target_is_seen_and_changes_with_its_vector(version):
    model = build_random(**version)
    assert relative_error(model(SOURCE, TARGET), build_random(**version, start=1)(SOURCE, TARGET)) > 1e-2
    logits = host(model(SOURCE, TARGET))
    model.source_embedding.tokens.E.data[0] += 1.0
    changed = host(model(SOURCE, TARGET))
    assert (changed[..., 1:] != logits[..., 1:]).any(axis=-1).all()


@every_version
@pytest.mark.parametrize("pieces", [(1, 1, 1, 1), (2, 2)])
def test_decoding_in_pieces_equals_the_whole(version, pieces):
    model = build_random(**version)
    expected, state, end = model(SOURCE, TARGET), decoding_state(model, SOURCE, 6), 0
    for count in pieces:
        logits, end = state.extend(TARGET[:, end : end + count]), end + count
        assert relative_error(logits, expected[:, end - 1]) <= 1e-12


def test_it_generates_from_its_own_start_to_its_own_end():
    model = build_random()
    start, eos = np.zeros((2, 1), int), 1
    said = generate_from(decoding_state(model, SOURCE, 9), start, 9, eos=eos).ids
    ids = start
    for t in range(said.shape[1]):
        best = host(model(SOURCE, ids))[:, -1].argmax(axis=-1)
        going_on = ~(said[:, :t] == eos).any(axis=1)
        assert (said[going_on, t] == best[going_on]).all()
        ids = np.concatenate([ids, said[:, t : t + 1]], axis=1)


@every_version
def test_the_first_logits_favour_no_token(version):
    model = Transformer(t5_config(3000, d_model=66, num_heads=H, d_ff=128, num_layers=2, **version), dtype="float32")
    ids = np.random.default_rng(60).integers(3, 3000, (8, 31))
    loss, _ = cross_entropy(model(ids, ids[:, :-1]), device(ids[:, 1:]))
    # untied and not scaled the first logits have variance 1: half a nat above ln V
    assert -0.1 < float(loss) - np.log(3000) < 0.8


def test_the_papers_model_has_none_of_t5s_choices():
    paper, t5 = (dataclasses.asdict(config) for config in (TransformerConfig(V), t5_config(V)))
    assert t5["norm_eps"] == 1e-6
    assert {name for name in paper if paper[name] != t5[name]} == {
        "norm", "normalization", "norm_eps", "bias", "positions",
        "scale_embeddings", "scale_scores", "scale_output", "start",
    }  # fmt: skip

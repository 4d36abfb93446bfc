"""A GPT folded for reading one token at a time says what the whole model says, in every switch position it can have."""

import numpy as np
import pytest

from minitransformer.config import Experts
from minitransformer.decoding.faster.folded import FoldedGPT, Unit, fold
from minitransformer.decoding.faster.gpt import GPTState
from minitransformer.functional.since_2017.activations import ACTIVATIONS
from minitransformer.models import GPT, gpt_config
from tests.decoding.test_incremental import POSITIONS, build_gpt
from tests.helpers import device, host, no_ids, randomize, relative_error, same
from tests.layers.test_attention_kinds import KINDS

IDS = np.array([[1, 6, 3, 8, 9], [1, 5, 7, 4, 10]])  # (B, T), with another B than there are heads
EPS = 0.3  # large, so that it is seen


def logits_one_by_one(model, ids, padding=None):
    """What is said after each of ids (B, T), read one at a time by the folded model -> (B, T, V) on the host."""
    state = GPTState(model, ids[:, :0], ids.shape[1], padding)
    logits = [host(state.extend(ids[:, i : i + 1])) for i in range(ids.shape[1])]
    assert isinstance(state.folded, FoldedGPT), "the plain layers have read this"
    return np.stack(logits, axis=1)


@pytest.mark.parametrize(("normalization", "bias"), [("layer", True), ("rms", False)])
@pytest.mark.parametrize("positions", POSITIONS)
def test_folded_model_equals_the_whole(normalization, bias, positions):
    model = build_gpt(positions, normalization=normalization, bias=bias, norm_eps=EPS)
    assert relative_error(logits_one_by_one(model, IDS), host(model(IDS))) <= 1e-12


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_folded_model_has_every_activation(activation):
    model = build_gpt(activation=activation, norm_eps=EPS)
    assert relative_error(logits_one_by_one(model, IDS), host(model(IDS))) <= 1e-12


@pytest.mark.parametrize(("num_kv_heads", "bias"), [(None, False), (1, True)])
@pytest.mark.parametrize("kind", KINDS)
def test_folded_model_has_every_kind_of_attention(kind, bias, num_kv_heads):
    model = build_gpt("learned", bias=bias, norm_eps=EPS, num_kv_heads=num_kv_heads, **KINDS[kind])
    assert relative_error(logits_one_by_one(model, IDS), host(model(IDS))) <= 1e-12


@pytest.mark.parametrize(("positions", "num_kv_heads"), [("learned", 1), ("rope", None)])
def test_folded_model_has_queries_and_keys_of_another_width(positions, num_kv_heads):
    model = build_gpt(positions, norm_eps=EPS, num_kv_heads=num_kv_heads, d_k=6)
    assert relative_error(logits_one_by_one(model, IDS), host(model(IDS))) <= 1e-12


@pytest.mark.parametrize(
    "switch", [{}, {"scale_scores": False}, {"attention": "linear", "positions": "none", "d_v": 6}]
)
@pytest.mark.parametrize("num_kv_heads", [None, 1])
def test_folded_model_has_qk_norm(num_kv_heads, switch):
    model = build_gpt(**{"positions": "rope", **switch}, norm_eps=EPS, num_kv_heads=num_kv_heads, d_k=6, qk_norm=True)
    assert relative_error(logits_one_by_one(model, IDS), host(model(IDS))) <= 1e-12


@pytest.mark.parametrize(("normalization", "scores"), [("layer", "softmax"), ("rms", "sigmoid")])
def test_folded_model_has_experts(normalization, scores):
    experts = Experts(4, 2, scores=scores)
    model = build_gpt("rope", normalization=normalization, norm_eps=EPS, experts=experts)
    assert relative_error(logits_one_by_one(model, IDS), host(model(IDS))) <= 1e-12


@pytest.mark.parametrize("positions", POSITIONS)
@pytest.mark.parametrize("num_kv_heads", [1])
def test_folded_model_reads_a_few_tokens_at_once(num_kv_heads, positions):
    model = build_gpt(positions, norm_eps=EPS, num_kv_heads=num_kv_heads)
    expected = host(model(IDS))
    state = GPTState(model, IDS[:, :0], IDS.shape[1])
    first = host(state.extend_last(IDS[:, :2], 1))
    assert isinstance(state.folded, FoldedGPT), "the plain layers have read this"
    assert relative_error(np.concatenate([first, host(state.extend_last(IDS[:, 2:], 3))], 1), expected[:, 1:]) <= 1e-12


@pytest.mark.parametrize(
    ("positions", "kind", "pieces"),
    [("learned", "full", (3, 2)), *(("alibi", kind, (1,) * 5) for kind in ("full", "windowed", "strided"))],
)
def test_folded_model_does_not_attend_to_padding_on_the_left(positions, kind, pieces):
    model, alone, end, logits = build_gpt(positions, num_kv_heads=1, **KINDS[kind]), IDS[:1, 2:], 0, []
    both = np.concatenate([np.pad(alone, ((0, 0), (2, 0))), IDS[1:2]])
    state = GPTState(model, no_ids(2), 5, np.array([2, 0]))
    for count in pieces:
        logits.append(host(state.extend_last(both[:, end : end + count], count)))
        end += count
    logits = np.concatenate(logits, axis=1)
    assert isinstance(state.folded, FoldedGPT), "the plain layers have read this"
    assert relative_error(logits[:1, 2:], host(model(alone))) <= 1e-12
    assert relative_error(logits[1:], host(model(IDS[1:2]))) <= 1e-12


@pytest.mark.parametrize(
    "switch", [{"scale_embeddings": True}, {"scale_scores": False}, {"scale_output": True}, {"tie_embeddings": False}]
)
def test_folded_model_keeps_every_scale(switch):
    model = build_gpt(norm_eps=EPS, **switch)
    assert relative_error(logits_one_by_one(model, IDS), host(model(IDS))) <= 1e-12


@pytest.mark.parametrize("changes", [{"norm": "post"}, {"norm": "post", "final_norm": True}, {"final_norm": False}])
def test_a_model_that_reads_the_stream_without_a_norm_is_not_folded(changes):
    model = build_gpt(**changes)
    state = GPTState(model, IDS[:, :0], 2)
    state.extend(IDS[:, :1])
    assert fold(model) is None
    assert relative_error(state.extend(IDS[:, 1:2]), host(model(IDS))[:, 1]) <= 1e-12


def test_folding_does_not_change_the_model():
    model = build_gpt("sinusoidal")
    before = {name: array.copy() for name, array in model.state_dict().items()}
    table = host(model.embedding.positions.table).copy()
    logits_one_by_one(model, IDS)
    assert all(same(array, before[name]) for name, array in model.state_dict().items())
    assert same(host(model.embedding.positions.table), table)


def test_folding_keeps_float32():
    model = randomize(GPT(gpt_config(11, d_model=12, num_heads=3, d_ff=7, num_layers=2, max_len=9)), scale=0.4)
    logits = logits_one_by_one(model, IDS)
    assert logits.dtype == np.float32
    assert relative_error(logits, host(model(IDS))) <= 5e-6


def test_unit_divides_each_row_by_its_length():
    rng = np.random.default_rng(0)
    norm = build_gpt(norm_eps=EPS).blocks.norm
    C = len(norm.gamma.data)
    x = rng.standard_normal((4, C))
    expected = [[value / (sum(v * v for v in row) + C * EPS) ** 0.5 for value in row] for row in x.tolist()]
    assert relative_error(Unit(norm)(device(x)), np.array(expected)) <= 1e-14


def test_a_model_is_folded_once_and_later_changes_of_its_weights_have_no_effect():
    model = build_gpt("learned")
    state, expected = GPTState(model, IDS[:, :0], 3), host(model(IDS))
    state.extend(IDS[:, :1])
    model.embedding.tokens.E.data[...] = 0.0
    assert relative_error(state.extend(IDS[:, 1:2]), expected[:, 1]) <= 1e-12


def test_a_model_of_width_one_is_folded_too():
    model = build_gpt("learned", d_model=1, num_heads=1, normalization="rms", norm_eps=EPS)
    assert relative_error(logits_one_by_one(model, IDS), host(model(IDS))) <= 1e-12

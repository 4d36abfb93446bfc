"""How a GPT must behave whatever its weights and positions: no look ahead, no trace of padding, honest losses."""

import math

import numpy as np
import pytest

from minitransformer.config import POSITIONS
from minitransformer.gradcheck.subjects.layers import ATTENTION_KINDS
from minitransformer.models import GPT, gpt_config
from tests.helpers import host, randomize, relative_error, same

V, H, C, F, MAX_LEN = 11, 3, 12, 7, 40
IDS = np.array([[3, 8, 4, 0, 6], [7, 5, 9, 4, 10]])  # (B, T); id 0 is a token as any other
every_position = pytest.mark.parametrize("positions", POSITIONS)


def build(positions="learned", dtype="float64", seed=0, **changes):
    """A model with its initial weights; all sizes differ from each other."""
    sizes = {"d_model": C, "num_heads": H, "d_ff": F, "num_layers": 2, "max_len": MAX_LEN, "positions": positions}
    return GPT(gpt_config(changes.pop("vocab_size", V), **{**sizes, **changes}), seed=seed, dtype=dtype)


def build_random(positions="learned", **changes):
    """A model with order-one weights, gamma, beta and biases included."""
    return randomize(build(positions, **changes), scale=0.4)


@every_position
def test_changing_a_future_token_leaves_earlier_logits_bit_equal(positions):
    model = build_random(positions)
    logits = model(IDS)
    for t in range(1, IDS.shape[1]):
        other = IDS.copy()
        other[:, t] = 2
        changed = model(other)
        assert same(changed[:, :t], logits[:, :t])
        assert host(changed[:, t:] != logits[:, t:]).any(axis=-1).all(), "it sees itself, and later tokens see it"


@every_position
@pytest.mark.parametrize("count", [1, 35])
def test_padding_at_the_end_changes_nothing(positions, count):
    model = build_random(positions)
    padded = np.pad(IDS, ((0, 0), (0, count)))
    assert relative_error(model(padded)[:, : IDS.shape[1]], model(IDS)) <= 1e-14


def test_the_tied_matrix_is_one_and_an_untied_one_gets_its_own_gradient():
    tied, untied = build(), build(tie_embeddings=False)
    assert tied.output.E is tied.embedding.tokens.E
    assert untied.num_parameters() - tied.num_parameters() == V * C
    assert build(tie_embeddings="inputs").num_parameters() == untied.num_parameters()


def test_the_choices_are_those_of_gpt2_and_can_be_changed():
    config = gpt_config(50)
    assert (config.norm, config.positions, config.activation, config.has_final_norm) == (
        "pre",
        "learned",
        "gelu_tanh",
        True,
    )
    assert (config.scale_embeddings, config.norm_eps) == (False, 1e-5)
    assert gpt_config(50, norm="post", positions="rope").norm == "post"


def test_with_scaled_output_the_logits_are_divided_by_the_root_of_the_width():
    plain, scaled = build_random(), build_random(scale_output=True)
    assert relative_error(scaled(IDS), host(plain(IDS)) / math.sqrt(C)) <= 1e-14


def test_there_is_one_array_of_attention_weights_for_each_layer_first_layer_first():
    model = build_random(num_layers=3)
    weights = [host(layer) for layer in model.attention_weights(IDS)]
    assert [layer.shape for layer in weights] == [(2, H, 5, 5)] * 3
    assert all(relative_error(layer.sum(axis=-1), np.ones((2, H, 5))) <= 1e-14 for layer in weights)
    first = randomize(build(num_layers=1))
    first.load_state_dict(
        {name: array for name, array in model.state_dict().items() if name in dict(first.named_parameters())}
    )
    assert same(first.attention_weights(IDS)[0], weights[0])


@pytest.mark.parametrize("kind", ATTENTION_KINDS)
def test_no_kind_of_attention_sees_a_later_token(kind):
    model = build_random(**ATTENTION_KINDS[kind], num_layers=3)
    logits = host(model(IDS))
    for t in range(1, IDS.shape[1]):
        other = IDS.copy()
        other[:, t] = 2
        changed = host(model(other))
        assert relative_error(changed[:, :t], logits[:, :t]) <= 1e-14
        assert (changed[:, t] != logits[:, t]).any(axis=-1).all()

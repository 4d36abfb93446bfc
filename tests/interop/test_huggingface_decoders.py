"""The settings of today's decoders: the angles of RoPE in old and new files, kinds of layers, and what is refused."""

import numpy as np
import pytest

from minitransformer.config import Rope, Windowed
from minitransformer.interop.huggingface_configs import config_from_huggingface
from minitransformer.interop.huggingface_decoders import FIELDS, decoder_table, in_our_order
from minitransformer.models import GPT

SMALL = {"vocab_size": 13, "hidden_size": 12, "intermediate_size": 7, "num_hidden_layers": 4, "num_attention_heads": 3}
SMALL |= {"num_key_value_heads": 1, "head_dim": 6, "max_position_embeddings": 20}
STRETCHED = {"factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 10}
MORE = {"gemma3_text": {"query_pre_attn_scalar": 6, "sliding_window": 3}, "mistral": {"sliding_window": 3}}
MORE |= {"qwen3_moe": {"moe_intermediate_size": 5, "num_experts": 3, "num_experts_per_tok": 2}}
MORE |= {"mixtral": {"num_local_experts": 3}}


BOTH = "rope_parameters, rope_scaling and rope_theta must agree, but this model has {.*500000"


def config(kind, **changes):
    return config_from_huggingface({"model_type": kind, **SMALL, **MORE.get(kind, {}), **changes})


@pytest.mark.parametrize("kind", FIELDS)
def test_the_table_has_every_weight_of_our_model_in_its_shape(kind):
    for tied in (True, False):
        ours = config(kind, tie_word_embeddings=tied)
        sizes = {name: parameter.data.size for name, parameter in GPT(ours, seed=None).named_parameters()}
        table = decoder_table(ours, kind)
        assert {name: sum(np.prod(t.shape) for t in source.tensors) for name, source in table.items()} == sizes


def test_features_that_are_half_a_head_apart_become_neighbours():
    assert in_our_order(np.arange(12), 6).tolist() == [0, 3, 1, 4, 2, 5, 6, 9, 7, 10, 8, 11]


@pytest.mark.parametrize("name", ["rope_type", "type"])
def test_angles_are_read_from_new_and_from_old_files(name):
    old = config("llama", rope_theta=5e5, rope_scaling={name: "llama3", **STRETCHED})
    new = config("llama", rope_parameters={"rope_type": "llama3", "rope_theta": 5e5, **STRETCHED})
    assert old == new
    assert new.positions == Rope(5e5, 8.0, 10)
    linear = config("llama", rope_scaling={name: "linear", "factor": 2.0})
    assert linear.positions == Rope(1e4, 2.0)
    assert config("mixtral").positions == Rope(1e6)


def test_a_file_may_say_the_angles_twice_if_both_say_the_same():
    new = {"rope_type": "linear", "factor": 2.0, "rope_theta": 5e5}
    twice = config("llama", rope_parameters=new, rope_scaling={"type": "linear", "factor": 2}, rope_theta=5e5)
    assert twice == config("llama", rope_parameters=new)
    assert config("llama", rope_parameters=new, rope_scaling=None) == config("llama", rope_parameters=new)
    nested = {"full_attention": new, "sliding_attention": {"rope_theta": 9e3}}
    two = config("mistral", rope_parameters=nested, layer_types=["sliding_attention", "full_attention"] * 2)
    assert (two.positions, two.attention.rope_base) == (Rope(5e5, 2.0), 9e3)


def test_gemmas_two_kinds_of_angles_are_read_from_new_and_from_old_files():
    old = {"rope_theta": 9e5, "rope_local_base_freq": 8e3, "rope_scaling": {"type": "linear", "factor": 8.0}}
    full = {"rope_type": "linear", "factor": 8.0, "rope_theta": 9e5}
    sliding = {"rope_type": "default", "rope_theta": 8e3}
    new = {"rope_parameters": {"full_attention": full, "sliding_attention": sliding}}
    for given in (old, new):
        found = config("gemma3_text", num_hidden_layers=6, **given)
        assert found.positions == Rope(9e5, 8.0)
        assert found.attention == Windowed(3, full_layers=(5,), rope_base=8e3)
        no_full_layer = config("gemma3_text", **given)
        assert (no_full_layer.positions, no_full_layer.attention) == (Rope(8e3), Windowed(3))
    usual = config("gemma3_text", num_hidden_layers=6)
    assert (usual.positions.base, usual.attention.rope_base) == (1e6, 1e4)


def test_kinds_of_layers_follow_the_list_or_the_older_fields():
    kinds = ["sliding_attention", "full_attention", "sliding_attention", "full_attention"]
    listed = config("qwen3", use_sliding_window=True, sliding_window=5, layer_types=kinds)
    assert listed.attention == Windowed(5, full_layers=(1, 3))
    above = config("qwen2", use_sliding_window=True, sliding_window=5, max_window_layers=3)
    assert above.attention.full_layers == (0, 1, 2)
    for kind in ("qwen2", "qwen3"):
        none = config(kind, use_sliding_window=True, sliding_window=5, max_window_layers=0)
        assert none.attention == Windowed(5)
    assert config("qwen2", use_sliding_window=False, sliding_window=5).attention == "full"
    assert config("mistral").attention.full_layers == ()
    assert config("mistral", sliding_window=None).attention == "full"
    assert config("llama", sliding_window=5).attention == "full"
    assert config("gemma3_text").attention.full_layers == ()
    assert config("gemma3_text", num_hidden_layers=13).attention.full_layers == (5, 11)
    assert config("gemma3_text", sliding_window_pattern=2).attention.full_layers == (1, 3)


@pytest.mark.parametrize(
    ("kind", "changes", "message"),
    [
        (
            "llama",
            {"rope_scaling": {"rope_type": "yarn", "factor": 2.0}},
            "rope_type must be one of default, linear, lla",
        ),
        (
            "llama",
            {"rope_scaling": {"rope_type": "llama3", **STRETCHED, "low_freq_factor": 2.0}},
            "low_freq_factor = 1,",
        ),
        ("llama", {"rope_scaling": {"rope_type": "linear"}}, "factor must be a number, got None"),
        ("llama", {"rope_scaling": "linear"}, "rope_scaling must be a dictionary, got 'linear'"),
        ("llama", {"rope_parameters": [1]}, r"rope_parameters must be a dictionary, got \[1\]"),
        ("llama", {"rope_parameters": {"rope_theta": 5e5}, "rope_scaling": {"type": "linear", "factor": 2.0}}, BOTH),
        ("llama", {"rope_parameters": {"rope_theta": 5e5}, "rope_theta": 1e4}, BOTH),
        ("gemma3_text", {"rope_parameters": {"full_attention": {"rope_theta": 5e5}}, "rope_theta": 1e4}, BOTH),
        (
            "gemma3_text",
            {"rope_parameters": {"sliding_attention": {"rope_theta": 5e5}}, "rope_local_base_freq": 1e4},
            BOTH,
        ),
        ("llama", {"rope_parameters": {"partial_rotary_factor": 0.5}}, "partial_rotary_factor = 0.5"),
        ("llama", {"attention_bias": True}, "attention_bias = False"),
        ("llama", {"mlp_bias": True}, "mlp_bias = False"),
        ("llama", {"hidden_act": "relu2"}, "hidden_act must be one of gelu_new, gelu_pytorch_tanh"),
        ("llama", {"quantization_config": {"bits": 4}}, "quantization_config = None"),
        ("llama", {"num_attention_heads": 0}, "num_attention_heads must be at least 1, got 0"),
        ("llama", {"rms_norm_eps": -1.0}, "rms_norm_eps must be at least 0"),
        ("mistral", {"sliding_window": 0}, "sliding_window must be at least 1, got 0"),
        ("qwen3", {"layer_types": ["full_attention"]}, "layer_types must be a list of 4 kinds"),
        ("qwen3", {"layer_types": ["chunked_attention"] * 4}, "layer_types must be one of sliding_attention, full_att"),
        ("gemma3_text", {"query_pre_attn_scalar": 7}, "query_pre_attn_scalar = head_dim = 6, but this one has 7"),
        ("gemma3_text", {"final_logit_softcapping": 30.0}, "final_logit_softcapping = None"),
        ("gemma3_text", {"attn_logit_softcapping": 50.0}, "attn_logit_softcapping = None"),
        ("gemma3_text", {"use_bidirectional_attention": True}, "use_bidirectional_attention = False"),
        (
            "gemma3_text",
            {"num_hidden_layers": 6}
            | {"rope_parameters": {"sliding_attention": {"rope_type": "linear", "factor": 2.0}}},
            "cannot have stretched angles of RoPE in layers with a window",
        ),
        ("qwen3_moe", {"decoder_sparse_step": 2}, "decoder_sparse_step = 1, but this one has 2"),
        ("qwen3_moe", {"mlp_only_layers": [0]}, r"mlp_only_layers = \[\], but this one has \[0\]"),
        ("mixtral", {"router_jitter_noise": 0.1}, "router_jitter_noise = 0.0"),
    ],
)
def test_what_a_decoder_of_ours_cannot_represent_is_refused_by_name(kind, changes, message):
    with pytest.raises((ValueError, TypeError), match=message):
        config(kind, **changes)


def test_a_head_of_qwen3_has_128_features_if_the_file_does_not_say_otherwise():
    given = {name: value for name, value in SMALL.items() if name != "head_dim"}
    assert config_from_huggingface({"model_type": "qwen3", **given}).d_k == 128

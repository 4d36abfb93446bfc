"""Configurations as flat fields: every file and option names them, and older files have all of them, used or not."""

import dataclasses
import json

import pytest

from minitransformer.config import (
    ConvConfig,
    Experts,
    Rope,
    Seq2SeqConfig,
    Strided,
    TransformerConfig,
    Windowed,
    flat_fields,
    nested_fields,
)
from minitransformer.config.choices import Choice
from minitransformer.config.flat import FLAT
from minitransformer.models import gpt_config, t5_config

pytestmark = pytest.mark.host_only  # no arrays

# the fields of the paper's model as they were saved when all numbers were fields of the configuration
OLD = {
    "padding": 0, "start": 1, "end": 2, "vocab_size": 11, "d_model": 12, "num_heads": 2, "d_ff": 7, "num_layers": 2,
    "dropout": 0.1, "attention_dropout": 0.0, "ffn_dropout": 0.0, "attention": "full", "window": None, "stride": None,
    "full_layers": None, "num_global": 0, "num_kv_heads": None, "d_k": None, "d_v": None, "qk_norm": False,
    "norm": "post", "final_norm": None, "tie_embeddings": True, "tie_output": True, "max_len": 9,
    "positions": "sinusoidal", "rope_base": 10000.0, "rope_factor": 1.0, "rope_original_len": None,
    "window_rope_base": None, "normalization": "layer", "norm_eps": 1e-5, "activation": "relu", "bias": True,
    "qkv_bias": None, "scale_embeddings": True, "scale_scores": True, "scale_output": False, "share_layers": False,
    "num_experts": None, "experts_per_token": 2, "renormalize_experts": True, "expert_scores": "softmax",
    "balance_weight": 0.01, "z_weight": 0.0,
}  # fmt: skip
WINDOW = {"attention": "windowed", "window": 4}
CASES = [  # what an older file has -> today's fields
    ({}, {}),
    ({"positions": "rope"}, {"positions": Rope()}),
    (
        {"positions": "rope", "rope_base": 5e5, "rope_factor": 8.0, "rope_original_len": 8192},
        {"positions": Rope(5e5, 8.0, 8192)},
    ),
    (WINDOW, {"attention": Windowed(4)}),
    ({**WINDOW, "num_global": 1, "full_layers": [0]}, {"attention": Windowed(4, 1, (0,))}),
    ({**WINDOW, "attention": "strided", "stride": 3, "num_global": 2}, {"attention": Strided(4, 3, 2)}),
    (
        {**WINDOW, "full_layers": [1], "positions": "rope", "rope_base": 1e6, "window_rope_base": 1e4},
        {"attention": Windowed(4, full_layers=(1,), rope_base=1e4), "positions": Rope(1e6)},
    ),
    ({"num_experts": 8}, {"experts": Experts(8)}),
    (
        {"num_experts": 8, "experts_per_token": 1, "renormalize_experts": False, "expert_scores": "sigmoid"}
        | {"balance_weight": 0.5, "z_weight": 0.25},
        {"experts": Experts(8, 1, renormalize=False, scores="sigmoid", balance=0.5, z_loss=0.25)},
    ),
    ({"tie_output": False}, {"tie_embeddings": "inputs"}),
    ({"tie_embeddings": False}, {"tie_embeddings": False}),
    ({"end": [5, 7]}, {"end": (5, 7)}),
]
WITHOUT_EFFECT = [
    {"rope_base": 500.0, "rope_factor": 2.0, "rope_original_len": 8, "window_rope_base": 100.0},
    {"experts_per_token": 1, "renormalize_experts": False, "expert_scores": "sigmoid"},
    {"balance_weight": 0.5, "z_weight": 0.25},
    {"starts_with_padding": False},
    {"label_smoothing": 0.1},
]


@pytest.mark.parametrize(("old", "fields"), CASES)
def test_an_older_file_gives_todays_choices(old, fields):
    config = TransformerConfig(**nested_fields({**OLD, **old}))
    small = {name: OLD[name] for name in ("vocab_size", "d_model", "num_heads", "d_ff", "num_layers", "max_len")}
    assert config == TransformerConfig(**small, **fields)
    assert TransformerConfig(**nested_fields(json.loads(json.dumps(flat_fields(config))))) == config


def test_the_angles_of_windows_had_no_effect_without_rope():
    old = {**OLD, **WINDOW, "full_layers": [1], "window_rope_base": 7.0}
    assert nested_fields(old)["attention"] == Windowed(4, full_layers=(1,))


@pytest.mark.parametrize("old", WITHOUT_EFFECT)
def test_what_had_no_effect_in_an_older_file_is_left_out(old):
    assert nested_fields({**OLD, **old}) == nested_fields(OLD)
    assert not flat_fields(TransformerConfig(**nested_fields({**OLD, **old}))).keys() & old.keys()


def test_an_output_without_the_embeddings_matrix_was_untied_whatever_tie_output_said():
    for tie_output in (True, False):
        assert nested_fields({**OLD, "tie_embeddings": False, "tie_output": tie_output})["tie_embeddings"] is False


def test_a_target_that_started_with_padding_starts_with_0():
    without_ids = {name: value for name, value in OLD.items() if name not in ("padding", "start", "end")}
    assert nested_fields({**without_ids, "starts_with_padding": True})["start"] == 0


def test_windows_in_all_layers_had_their_own_angles_and_none_the_others():
    own = {**WINDOW, "positions": "rope", "rope_base": 50.0, "rope_factor": 3.0, "window_rope_base": 7.0}
    assert nested_fields({**OLD, **own})["positions"] == Rope(7.0)


def test_every_number_of_a_choice_has_one_flat_name_and_a_file_has_those_that_are_used():
    kinds = {"positions": (Rope,), "attention": (Windowed, Strided), "experts": (Experts,)}
    assert {kind for several in kinds.values() for kind in several} == set(Choice.kinds.values())
    numbers = {(of, own.name) for of, several in kinds.items() for kind in several for own in dataclasses.fields(kind)}
    assert set(FLAT.values()) == numbers
    assert len(FLAT) == len(numbers)
    config = gpt_config(11, positions=Rope(9.0), attention=Strided(3, 2), experts=Experts(4))
    flat = flat_fields(config)
    assert (flat["positions"], flat["rope_base"], flat["attention"], flat["stride"]) == ("rope", 9.0, "strided", 2)
    others = {field.name for field in dataclasses.fields(config)} - {"experts"}
    assert flat.keys() == others | FLAT.keys() - {"full_layers", "window_rope_base"}
    assert not flat_fields(t5_config(11)).keys() & FLAT.keys()


@pytest.mark.parametrize("config", [Seq2SeqConfig(11, attention="dot"), ConvConfig(11, end=(3, 4))])
def test_other_configurations_are_flat_already(config):
    assert flat_fields(config) == dataclasses.asdict(config)
    assert type(config)(**nested_fields(flat_fields(config))) == config


@pytest.mark.parametrize(
    ("flat", "error"),
    [
        ({"attention": "windowed"}, "missing .* 'window'"),
        ({"attention": "windowed", "window": "4"}, "Windowed.window must be a whole number"),
        ({"positions": "rope", "rope_base": None}, "Rope.base must be a number"),
        ({"num_experts": "many"}, "Experts.count must be a whole number"),
    ],
)
def test_a_file_with_other_numbers_is_refused(flat, error):
    with pytest.raises(TypeError, match=error):
        nested_fields(flat)

"""Configurations: the paper's numbers by name, and every value that no model can have refused by its field."""

import dataclasses
import math

import pytest

from minitransformer.models import TransformerConfig, config_names, named_config
from minitransformer.vocabulary import BOS, EOS, PAD

pytestmark = pytest.mark.host_only  # no arrays

# paper, table 3 and section 5.4: N, d_model, d_ff, h, P_drop, epsilon_ls
PAPER = {"base": (6, 512, 2048, 8, 0.1), "big": (6, 1024, 4096, 16, 0.3)}
SMALL = {"vocab_size": 11, "d_model": 12, "num_heads": 3, "d_ff": 7, "num_layers": 2, "max_len": 9}


@pytest.mark.parametrize("name", PAPER)
def test_the_papers_models_have_the_numbers_of_its_table_3(name):
    config = named_config(name, 37000)
    numbers = (config.num_layers, config.d_model, config.d_ff, config.num_heads, config.dropout)
    assert numbers == PAPER[name]
    assert config.d_model // config.num_heads == 64  # d_k and d_v
    assert (config.vocab_size, config.norm, config.tie_embeddings) == (37000, "post", True)
    assert not config.has_final_norm
    assert (config.attention_dropout, config.ffn_dropout) == (0.0, 0.0)  # not in the paper


def test_the_defaults_are_the_papers_base_model():
    assert TransformerConfig(37000) == named_config("base", 37000)


@pytest.mark.parametrize("name", config_names())
def test_every_named_configuration_takes_its_changes_and_keeps_the_rest(name):
    plain = named_config(name, 50)
    changed = named_config(name, 50, norm="pre", dropout=0.25, num_layers=3)
    assert changed == dataclasses.replace(plain, norm="pre", dropout=0.25, num_layers=3)


def test_names_are_listed_and_an_unknown_one_is_refused_with_them():
    assert {"tiny", "base", "big"} <= set(config_names())
    with pytest.raises(ValueError, match=f"configuration must be one of {', '.join(config_names())}, got 'huge'"):
        named_config("huge", 50)


@pytest.mark.parametrize(
    ("norm", "final_norm", "expected"),
    [
        ("post", None, False),
        ("pre", None, True),
        ("post", True, True),
        ("post", False, False),
        ("pre", True, True),
        ("pre", False, False),
    ],
)
def test_a_final_norm_comes_with_pre_norm_by_default(norm, final_norm, expected):
    assert TransformerConfig(**SMALL, norm=norm, final_norm=final_norm).has_final_norm is expected


def test_the_special_tokens_are_the_first_three_ids():
    assert (PAD, BOS, EOS) == (0, 1, 2)


def test_a_configuration_cannot_be_changed_after_its_checks():
    config = TransformerConfig(**SMALL)
    with pytest.raises(dataclasses.FrozenInstanceError):
        config.dropout = 1.5


@pytest.mark.parametrize("value", [0, -1])
@pytest.mark.parametrize("field", ["vocab_size", "d_model", "num_heads", "d_ff", "num_layers", "max_len"])
def test_a_size_below_one_is_refused_by_its_field(field, value):
    with pytest.raises(ValueError, match=f"^{field} must be at least 1, got {value}$"):
        TransformerConfig(**{**SMALL, field: value})


@pytest.mark.parametrize("value", [1.0, 1.5, -0.1, math.nan])
@pytest.mark.parametrize("field", ["dropout", "attention_dropout", "ffn_dropout"])
def test_a_rate_outside_0_to_1_is_refused_by_its_field(field, value):
    with pytest.raises(ValueError, match=f"^{field} must be at least 0 and less than 1, got {value}$"):
        TransformerConfig(**{**SMALL, field: value})


@pytest.mark.parametrize("heads", [1, 2, 3, 4, 6, 12])
def test_every_number_of_heads_that_divides_d_model_is_accepted(heads):
    assert TransformerConfig(**{**SMALL, "num_heads": heads}).num_heads == heads


@pytest.mark.parametrize("heads", [5, 7, 24])
def test_heads_that_do_not_divide_d_model_are_refused_with_both_numbers(heads):
    with pytest.raises(ValueError, match=f"got d_model = 12 and num_heads = {heads}$"):
        TransformerConfig(**{**SMALL, "num_heads": heads})

"""Configurations: the paper's numbers by name, and every value that no model can have refused by its field."""

import dataclasses
import math
from functools import partial

import pytest

from minitransformer import config as choices
from minitransformer.config import SWITCHES, Experts, Rope, Strided, Windowed
from minitransformer.config.claims import least_weights, table_sizes
from minitransformer.config.flat import FLAT, flat_fields
from minitransformer.layers import residual
from minitransformer.layers.since_2017 import memory_attention
from minitransformer.models import (
    BERT,
    GPT,
    ConvConfig,
    ConvLM,
    Seq2Seq,
    Seq2SeqConfig,
    Transformer,
    TransformerConfig,
    config_names,
    gpt_config,
    named_config,
    named_seq2seq_config,
)
from minitransformer.vocabulary import BOS, EOS, PAD

pytestmark = pytest.mark.host_only  # no arrays

# paper, table 3 and section 5.4: N, d_model, d_ff, h, P_drop, epsilon_ls
PAPER = {"base": (6, 512, 2048, 8, 0.1), "big": (6, 1024, 4096, 16, 0.3)}
SMALL = {"vocab_size": 11, "d_model": 12, "num_heads": 3, "d_ff": 7, "num_layers": 2, "max_len": 9}

# what a configuration calls a choice, and the layers that there are
BUILT = [
    (choices.NORMS, residual.PLACEMENTS),
    (choices.MEMORY_ATTENTION, memory_attention.MEMORY_ATTENTION),
]


@pytest.mark.parametrize(("names", "layers"), BUILT)
def test_every_choice_of_a_configuration_has_its_layer(names, layers):
    assert set(names) == set(layers)


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


def test_the_special_tokens_are_the_first_three_ids():
    assert (PAD, BOS, EOS) == (0, 1, 2)


def test_a_configuration_cannot_be_changed_after_its_checks():
    config = TransformerConfig(**SMALL)
    with pytest.raises(dataclasses.FrozenInstanceError):
        config.dropout = 1.5


# the fields of each configuration, by what they must be
SIZES = {
    TransformerConfig: ("vocab_size", "d_model", "num_heads", "d_ff", "num_layers", "max_len"),
    Seq2SeqConfig: ("vocab_size", "d_model", "hidden_size", "num_layers", "max_len"),
    ConvConfig: ("vocab_size", "d_model", "num_layers", "kernel_size", "dilation"),
}
RATES = {
    TransformerConfig: ("dropout", "attention_dropout", "ffn_dropout"),
    Seq2SeqConfig: ("dropout",),
    ConvConfig: ("dropout",),
}
SWITCHES_OF = {
    TransformerConfig: SWITCHES,
    Seq2SeqConfig: ("bidirectional", "reverse_source"),
    ConvConfig: ("tie_embeddings",),
}


def fields_of(table):
    """(configuration, field) as parameters."""
    return pytest.mark.parametrize(("kind", "field"), [(kind, name) for kind in table for name in table[kind]])


@fields_of(SIZES)
def test_a_size_below_one_is_refused_by_its_field(kind, field):
    with pytest.raises(ValueError, match=rf"^{field} must be at least 1, got 0$"):
        kind(**{"vocab_size": 11, field: 0})


@pytest.mark.parametrize("value", [1.0, -0.1, math.nan])
@fields_of(RATES)
def test_a_rate_outside_0_to_1_is_refused_by_its_field(kind, field, value):
    with pytest.raises(ValueError, match=rf"^{field} must be at least 0 and less than 1, got {value}$"):
        kind(11, **{field: value})


@fields_of(SWITCHES_OF)
def test_a_switch_is_true_or_false_and_nothing_like_it(kind, field):
    with pytest.raises(TypeError, match=rf"^{field} must be True or False, got 0$"):
        kind(11, **{field: 0})


# fields with values that no model can have -> the error, and what it says
IMPOSSIBLE = [
    ({"norm": "middle"}, ValueError, "^norm must be one of post, pre, sandwich, got 'middle'$"),
    ({"normalization": "batch"}, ValueError, "^normalization must be one of .*, got 'batch'$"),
    ({"activation": "sine"}, ValueError, "^activation must be one of .*, got 'sine'$"),
    ({"positions": "spiral"}, ValueError, "^positions must be one of .*, got 'spiral'$"),
    ({"attention": "hard"}, ValueError, "^attention must be one of .*, got 'hard'$"),
    ({"norm_eps": 0.0}, ValueError, "^norm_eps must be greater than 0 and finite, got 0.0$"),
    ({"norm_eps": math.nan}, ValueError, "^norm_eps must be greater than 0 and finite, got nan$"),
    ({"norm_eps": math.inf}, ValueError, "^norm_eps must be greater than 0 and finite, got inf$"),
    ({"norm_eps": "1e-5"}, TypeError, "^norm_eps must be a number"),
    ({"final_norm": 1}, TypeError, "^final_norm must be True or False, got 1$"),
    ({"num_kv_heads": 2}, ValueError, "num_kv_heads"),
    ({"num_kv_heads": 0}, ValueError, "num_kv_heads"),
    ({"d_k": 0}, ValueError, "^d_k must be at least 1, got 0$"),
    ({"attention": "tiled", "d_k": 2}, ValueError, r"^attention='tiled' needs d_k and d_v to be equal, got \(2, 4\)$"),
    ({"attention": Windowed(2, full_layers=(0, 2))}, ValueError, "^full_layers .* num_layers = 2, got 2$"),
    ({"attention": Windowed(2, full_layers=(0,)), "share_layers": True}, ValueError, "share_layers"),
    ({"attention": Windowed(2, 0, (0,), rope_base=9.0)}, ValueError, "^Windowed.rope_base needs .*='sinusoidal'$"),
    ({"attention": Rope()}, ValueError, "^attention must be one of full, .*, got 'rope'$"),
    ({"attention": "windowed"}, ValueError, r"^attention='windowed' .* Windowed\(window"),
    ({"attention": "strided"}, ValueError, r"^attention='strided' .* Strided\(window"),
    ({"positions": Windowed(2)}, ValueError, "^positions must be one of sinusoidal, .*, got 'windowed'$"),
    ({"experts": 8}, TypeError, r"^experts must be Experts\(count\) or None, got 8$"),
    ({"tie_embeddings": "outputs"}, TypeError, "^tie_embeddings must be True, False or 'inputs', got 'outputs'$"),
    ({"tie_embeddings": 0}, TypeError, "^tie_embeddings must be True, False or 'inputs', got 0$"),
    ({"attention": "linear", "attention_dropout": 0.1}, ValueError, "^linear attention has no attention_dropout"),
    ({"attention": "linear", "positions": "relative"}, ValueError, "^linear attention .* positions='relative'"),
    ({"attention": "linear", "positions": Rope()}, ValueError, "^linear attention .* positions='rope'"),
    ({"attention": "linear", "positions": "alibi"}, ValueError, "^linear attention .* positions='alibi'"),
    ({"attention": "linear", "scale_scores": False}, ValueError, "^linear attention .* scale_scores"),
    ({"num_heads": 5}, ValueError, "got d_model = 12 and num_heads = 5$"),
    ({"d_model": 9}, ValueError, "^d_model must be even for sinusoidal positions, got 9$"),
]


@pytest.mark.parametrize(("changes", "error", "message"), IMPOSSIBLE, ids=str)
def test_what_no_model_can_have_is_refused_by_its_field(changes, error, message):
    with pytest.raises(error, match=message):
        TransformerConfig(**{**SMALL, **changes})


# choices whose own numbers make no sense -> the error, and what it says
NUMBERS = [
    (Rope, {"base": 0.5}, ValueError, "^Rope.base must be at least 1 and finite, got 0.5$"),
    (Rope, {"factor": math.inf}, ValueError, "^Rope.factor must be at least 1 and finite, got inf$"),
    (Rope, {"factor": "2"}, TypeError, "^Rope.factor must be a number, got '2'$"),
    (Rope, {"original_len": 0}, ValueError, "^Rope.original_len must be at least 1, got 0$"),
    (Windowed, {"window": 0}, ValueError, "^Windowed.window must be at least 1, got 0$"),
    (Windowed, {"window": 2, "num_global": -1}, ValueError, "^Windowed.num_global must be at least 0, got -1$"),
    (Windowed, {"window": 2, "full_layers": 1}, TypeError, "^Windowed.full_layers must be a list of layers, got 1$"),
    (Windowed, {"window": 2, "full_layers": (-1,)}, ValueError, "^Windowed.full_layers must be at least 0, got -1$"),
    (Windowed, {"window": 2, "full_layers": (1,), "rope_base": 0}, ValueError, "^Windowed.rope_base must be .*, got 0"),
    (Windowed, {"window": 2, "rope_base": 9.0}, ValueError, r"^Windowed.rope_base needs full_layers; .*=Rope\(9.0\)$"),
    (Strided, {"window": 0, "stride": 2}, ValueError, "^Strided.window must be at least 1, got 0$"),
    (Strided, {"window": 3, "stride": 0}, ValueError, "^Strided.stride must be at least 1, got 0$"),
    (Strided, {"window": 3, "stride": 2, "num_global": -1}, ValueError, "^Strided.num_global must be .*, got -1$"),
    (Experts, {"count": 0}, ValueError, "^Experts.count must be at least 1, got 0$"),
    (Experts, {"count": 2, "per_token": 3}, ValueError, "^Experts.per_token must be at most count = 2, got 3$"),
    (Experts, {"count": 2, "per_token": 0}, ValueError, "^Experts.per_token must be at least 1, got 0$"),
    (Experts, {"count": 2, "renormalize": 1}, TypeError, "^Experts.renormalize must be True or False, got 1$"),
    (Experts, {"count": 2, "scores": "tanh"}, ValueError, "^Experts.scores must be one of softmax, .*, got 'tanh'$"),
    (Experts, {"count": 2, "balance": -0.1}, ValueError, "^Experts.balance must be .*, got -0.1$"),
    (Experts, {"count": 2, "z_loss": math.inf}, ValueError, "^Experts.z_loss must be .*, got inf$"),
]


@pytest.mark.parametrize(("kind", "numbers", "error", "message"), NUMBERS)
def test_numbers_that_a_choice_cannot_have_are_refused_by_its_field(kind, numbers, error, message):
    with pytest.raises(error, match=message):
        kind(**numbers)


@pytest.mark.parametrize("name", [*FLAT, "tie_output", "starts_with_padding"])
def test_an_option_of_a_choice_cannot_be_set_beside_it(name):
    for make in (TransformerConfig, gpt_config, partial(named_config, "tiny")):
        with pytest.raises(TypeError, match=f"unexpected keyword argument '{name}'"):
            make(vocab_size=11, **{name: 2})


def test_the_name_of_rope_stands_for_its_usual_angles():
    assert TransformerConfig(**SMALL, positions="rope") == TransformerConfig(**SMALL, positions=Rope(10000.0, 1.0))


PREDECESSORS = [
    (Seq2SeqConfig, {"cell": "rnn"}, "cell must be one of lstm, gru, got 'rnn'"),
    (Seq2SeqConfig, {"attention": "concat"}, "attention must be one of none, additive, dot, general, got 'concat'"),
    (Seq2SeqConfig, {"hidden_size": 9, "bidirectional": True}, "hidden_size must be even for two directions, got 9"),
    (Seq2SeqConfig, {"forget_bias": math.inf}, "forget_bias must be finite, got inf"),
    (ConvConfig, {"activation": "gelu"}, "activation must be one of relu, glu, got 'gelu'"),
    (ConvConfig, {"norm": "none"}, "norm must be one of post, pre, sandwich, got 'none'"),
    (ConvConfig, {"norm_eps": -1.0}, "norm_eps must be greater than 0 and finite, got -1.0"),
]


@pytest.mark.parametrize(("kind", "changes", "message"), PREDECESSORS)
def test_what_no_recurrent_or_convolutional_model_can_have_is_refused_by_its_field(kind, changes, message):
    with pytest.raises(ValueError, match=message):
        kind(11, **changes)


@pytest.mark.parametrize("kind", [Seq2SeqConfig, ConvConfig])
def test_the_smallest_sizes_of_recurrent_and_convolutional_models_are_accepted(kind):
    config = kind(**dict.fromkeys(SIZES[kind], 1))
    assert [getattr(config, name) for name in SIZES[kind]] == [1] * 5


@pytest.mark.parametrize("name", ["base", "big"])
def test_named_recurrent_configurations_take_their_changes_and_keep_the_rest(name):
    plain = named_seq2seq_config(name, 11)
    assert named_seq2seq_config(name, 11, cell="gru", d_model=8) == dataclasses.replace(plain, cell="gru", d_model=8)
    with pytest.raises(ValueError, match="configuration must be one of tiny, base, big, got 'huge'"):
        named_seq2seq_config("huge", 11)


@pytest.mark.parametrize(
    "changes",
    [
        dict.fromkeys(("vocab_size", "num_heads", "d_ff", "num_layers", "max_len"), 1),
        {"d_model": 1, "num_heads": 1, "positions": "none"},
        {"d_model": 9, "positions": "learned"},
        {"norm_eps": 1e-300},
        {"num_kv_heads": 1},
        {"d_k": 1},
        {"attention": Windowed(1, num_global=1, full_layers=(1,))},
        {"attention": Strided(1, 1, num_global=2)},
        {"positions": Rope(1.0, 1.0, 1)},
        {"experts": Experts(1, 1, balance=0.0)},
        {"attention": "linear", "positions": "learned"},
        {"final_norm": True},
    ],
    ids=str,
)
def test_the_smallest_values_and_all_that_fits_together_are_accepted(changes):
    config = TransformerConfig(**{**SMALL, **changes})
    assert {name: getattr(config, name) for name in changes} == changes


@pytest.mark.parametrize(("tied", "matrices"), [(True, 1), ("inputs", 2), (False, 3)])
def test_source_target_and_output_share_one_matrix_or_two_or_none(tied, matrices):
    config = TransformerConfig(**SMALL, tie_embeddings=tied)
    model = Transformer(config, seed=None)
    E = (model.source_embedding.tokens.E, model.target_embedding.tokens.E, model.output.E)
    assert len(set(map(id, E))) == matrices
    assert config.has_tied_output is (E[2] is E[0])


@pytest.mark.parametrize(
    ("kind", "config"),
    [
        *((kind, TransformerConfig(**SMALL)) for kind in (Transformer, GPT, BERT)),
        (BERT, TransformerConfig(**SMALL, share_layers=True)),
        (GPT, TransformerConfig(**SMALL, experts=Experts(5))),
        (ConvLM, ConvConfig(11, d_model=12, num_layers=2, kernel_size=5)),
        (Seq2Seq, Seq2SeqConfig(11, d_model=12, hidden_size=7, num_layers=3, cell="gru", attention="none")),
    ],
)
def test_the_least_numbers_are_the_products_that_they_are_called_and_no_model_has_fewer(kind, config):
    fields, model = flat_fields(config), kind(config, seed=None)
    for claims in (least_weights(config), table_sizes(config)):
        assert claims == {product: math.prod(fields[name] for name in product.split(" * ")) for product in claims}
    assert len(least_weights(config)) == 2 + getattr(config, "share_layers", False)
    assert all(number <= model.num_parameters() for number in least_weights(config).values())
    assert set(table_sizes(config)) == ({"max_len * d_model"} if isinstance(config, TransformerConfig) else set())

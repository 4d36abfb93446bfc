"""A config.json of theirs becomes our configuration, or is refused with the name of the field."""

import pytest

from minitransformer.interop import config_from_huggingface
from tests.interop.given import BERT_FILE, GPT2_FILE, T5_1_1_FILE, T5_FILE

REFUSED = [
    (GPT2_FILE, "scale_attn_weights", False, "only have scale_attn_weights = True, but this one has False"),
    (GPT2_FILE, "activation_function", "tanh", "activation_function must be one of gelu_new, .*, got 'tanh'"),
    (GPT2_FILE, "embd_pdrop", 0.2, "one dropout rate for embd_pdrop and resid_pdrop, but this one has 0.2 and 0.1"),
    (GPT2_FILE, "n_head", 5, "n_embd must be a multiple of n_head, got n_embd = 12 and n_head = 5"),
    (GPT2_FILE, "quantization_config", {"bits": 4}, "only have quantization_config = None"),
    (GPT2_FILE, "hidden_size", 8, "hidden_size and n_embd are one field, but they are 8 and 12"),
    (BERT_FILE, "hidden_act", "gelu_new", "only have hidden_act = 'gelu', but this one has 'gelu_new'"),
    (BERT_FILE, "position_embedding_type", "relative_key", "only have position_embedding_type = 'absolute'"),
    (BERT_FILE, "classifier_dropout", 0.3, "one dropout rate for classifier_dropout and hidden_dropout_prob"),
    (T5_FILE, "d_kv", 8, "only have d_kv = d_model / num_heads = 12 / 3, but this one has 8"),
    (T5_FILE, "relative_attention_num_buckets", 16, "only have relative_attention_num_buckets = 32"),
    (T5_FILE, "feed_forward_proj", "gated-relu", "feed_forward_proj must be one of .*relu, .*, got 'gated-relu'"),
    (T5_FILE, "is_gated_act", True, "dense_act_fn must be one of gelu_new, .*, got 'relu'"),
    (T5_FILE, "per_layer_config", {"0": {"d_ff": 9}}, "only have per_layer_config = None"),
    (GPT2_FILE, "model_type", "gpt_oss", "model_type must be one of gpt2, bert, t5, llama, .*, got 'gpt_oss'"),
]


@pytest.mark.parametrize(("file", "name", "value", "message"), REFUSED)
def test_what_we_cannot_represent_is_refused_by_name(file, name, value, message):
    with pytest.raises(ValueError, match=message) as refusal:
        config_from_huggingface({**file, name: value})
    assert "\n" not in str(refusal.value)


FIELDS = {
    "gpt2": (
        GPT2_FILE,
        ("vocab_size", "n_positions", "n_embd", "n_layer", "n_head", "n_inner"),
        ("resid_pdrop", "embd_pdrop", "attn_pdrop"),
        "layer_norm_epsilon",
        ("tie_word_embeddings",),
    ),
    "bert": (
        BERT_FILE,
        (
            "vocab_size",
            "hidden_size",
            "num_hidden_layers",
            "num_attention_heads",
            "intermediate_size",
            "max_position_embeddings",
            "type_vocab_size",
        ),
        ("hidden_dropout_prob", "attention_probs_dropout_prob", "classifier_dropout"),
        "layer_norm_eps",
        (),
    ),
    "t5": (
        T5_FILE,
        ("vocab_size", "d_model", "d_kv", "d_ff", "num_layers", "num_decoder_layers", "num_heads", "n_positions"),
        ("dropout_rate",),
        "layer_norm_epsilon",
        ("tie_word_embeddings", "scale_decoder_outputs", "is_gated_act"),
    ),
}
MAY_BE_NULL = ("n_inner", "num_decoder_layers", "classifier_dropout")


@pytest.mark.parametrize("kind", FIELDS)
def test_a_field_that_is_null_of_another_type_or_out_of_range_is_refused_by_its_name(kind):
    file, sizes, rates, eps, switches = FIELDS[kind]
    wrong = {
        **dict.fromkeys(sizes, (None, "12", 12.0, True, [12], 0, -1, float("nan"))),
        **dict.fromkeys(rates, (None, "0.1", [0.1], True, -0.1, 1, float("nan"), float("inf"))),
        eps: (None, "1e-5", True, -1e-5, float("nan"), float("inf")),
        **dict.fromkeys(switches, (None, "false", 0, 1.0)),
    }
    for name, values in wrong.items():
        for value in values:
            if value is not None or name not in MAY_BE_NULL:
                with pytest.raises((TypeError, ValueError), match=f"^{name} must be .*, got") as refusal:
                    config_from_huggingface({**file, name: value})
                assert "\n" not in str(refusal.value)


@pytest.mark.parametrize(
    ("alias", "name", "kind"),
    [
        ("hidden_size", "n_embd", "gpt2"),
        ("max_position_embeddings", "n_positions", "gpt2"),
        ("num_attention_heads", "n_head", "gpt2"),
        ("num_hidden_layers", "n_layer", "gpt2"),
        ("hidden_size", "d_model", "t5"),
        ("head_dim", "d_kv", "t5"),
        ("num_attention_heads", "num_heads", "t5"),
        ("num_hidden_layers", "num_layers", "t5"),
    ],
)
def test_a_field_may_have_the_name_that_all_models_share(alias, name, kind):
    file = FIELDS[kind][0]
    renamed = {alias if field == name else field: value for field, value in file.items()}
    assert config_from_huggingface(renamed) == config_from_huggingface(file)
    assert config_from_huggingface({**file, alias: file[name]}) == config_from_huggingface(file)
    with pytest.raises(ValueError, match=f"{alias} and {name} are one field, but they are 600 and {file[name]}"):
        config_from_huggingface({**file, alias: 600})


SAME_NAMES = {"relu": "relu", "gelu": "gelu", "gelu_new": "gelu_tanh", "gelu_pytorch_tanh": "gelu_tanh"}
SAME_NAMES |= {"silu": "silu", "swish": "silu"}
GATED_NAMES = {"gelu": "geglu", "gelu_new": "geglu_tanh", "gelu_pytorch_tanh": "geglu_tanh"}
GATED_NAMES |= {"silu": "swiglu", "swish": "swiglu"}


@pytest.mark.parametrize("name", SAME_NAMES)
def test_activations_are_those_that_their_names_mean(name):
    assert config_from_huggingface(GPT2_FILE | {"activation_function": name}).activation == SAME_NAMES[name]
    assert config_from_huggingface(T5_FILE | {"feed_forward_proj": name}).activation == SAME_NAMES[name]
    assert config_from_huggingface(T5_FILE | {"dense_act_fn": name}).activation == SAME_NAMES[name]


@pytest.mark.parametrize("name", GATED_NAMES)
def test_gated_activations_are_those_that_their_names_mean(name):
    # the exact GELU has to be asked for: "gated-gelu" is the form with tanh
    expected = "geglu_tanh" if name == "gelu" else GATED_NAMES[name]
    assert config_from_huggingface(T5_FILE | {"feed_forward_proj": f"gated-{name}"}).activation == expected
    asked = {"feed_forward_proj": "gated-silu", "dense_act_fn": name}
    assert config_from_huggingface(T5_FILE | asked).activation == GATED_NAMES[name]
    asked = {"feed_forward_proj": "relu", "is_gated_act": True, "dense_act_fn": name}
    assert config_from_huggingface(T5_FILE | asked).activation == GATED_NAMES[name]


def test_their_configurations_become_ours_field_by_field():
    gpt2 = config_from_huggingface(GPT2_FILE | {"resid_pdrop": 0.3, "embd_pdrop": 0.3, "layer_norm_epsilon": 1e-4})
    assert (gpt2.vocab_size, gpt2.d_model, gpt2.num_heads, gpt2.d_ff, gpt2.num_layers, gpt2.max_len) == (
        11,
        12,
        3,
        48,
        2,
        9,
    )
    assert (gpt2.dropout, gpt2.attention_dropout, gpt2.norm_eps, gpt2.activation) == (0.3, 0.1, 1e-4, "gelu_tanh")
    bert = config_from_huggingface(BERT_FILE | {"attention_probs_dropout_prob": 0.2})
    assert (bert.d_ff, bert.max_len, bert.dropout, bert.attention_dropout, bert.norm_eps) == (7, 9, 0.1, 0.2, 1e-12)
    t5 = config_from_huggingface(T5_FILE | {"n_positions": 77, "dropout_rate": 0.2})
    assert (t5.max_len, t5.dropout, t5.attention_dropout, t5.ffn_dropout, t5.norm_eps) == (77, 0.2, 0.2, 0.2, 1e-6)
    assert (t5.activation, t5.has_tied_output, t5.scale_output) == ("relu", True, True)
    newer = config_from_huggingface(T5_1_1_FILE)
    assert (newer.activation, newer.has_tied_output, newer.scale_output) == ("geglu_tanh", False, False)

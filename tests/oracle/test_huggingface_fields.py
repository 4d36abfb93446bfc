"""Every field of Hugging Face's configurations: we compute what they do, refuse it by its name, or it means nothing.

Each field is given another value. Then either our logits and gradients equal theirs again, or we refuse the field.
"""

import dataclasses

import pytest

from minitransformer.interop.huggingface_configs import KINDS, config_from_huggingface
from tests.oracle.huggingface_cases import BERT, BOUND, GPT2, T5, Case, config_file, errors

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from tests.oracle.huggingface_modules import solve  # noqa: E402 - it needs transformers

HONOURED, REFUSED, MEANS_NOTHING = "honoured", "refused", "means nothing"
SPECIAL_ID = "a special id"  # test_special_ids.py compares what they do

# {field: (another value or, to keep the sizes consistent, several fields; what we make of it)}
EVERY_MODEL = {
    "transformers_version": ("1.0", MEANS_NOTHING),
    "architectures": (["Something"], MEANS_NOTHING),
    "output_hidden_states": (True, MEANS_NOTHING),
    "output_attentions": (True, MEANS_NOTHING),
    "return_dict": (False, MEANS_NOTHING),
    "dtype": ("bfloat16", MEANS_NOTHING),  # files say themselves which dtype they have
    "chunk_size_feed_forward": (2, MEANS_NOTHING),
    "id2label": ({"0": "a", "1": "b", "2": "c"}, MEANS_NOTHING),
    "label2id": ({"a": 0, "b": 1, "c": 2}, MEANS_NOTHING),
    "problem_type": ("regression", MEANS_NOTHING),
    "use_cache": (False, MEANS_NOTHING),
    "eos_token_id": (3, SPECIAL_ID),
    "_name_or_path": ("somewhere", MEANS_NOTHING),
}
FIELDS = {
    "gpt2": {
        **EVERY_MODEL,
        "model_type": ("gpt3", REFUSED),
        "vocab_size": (13, HONOURED),
        "n_positions": (10, HONOURED),
        "n_embd": (24, HONOURED),
        "n_layer": (3, HONOURED),
        "n_head": (2, HONOURED),
        "n_inner": (None, HONOURED),
        "activation_function": ("silu", HONOURED),
        "resid_pdrop": ({"resid_pdrop": 0.3, "embd_pdrop": 0.3}, HONOURED),
        "embd_pdrop": (0.3, REFUSED),
        "attn_pdrop": (0.3, HONOURED),
        "layer_norm_epsilon": (0.2, HONOURED),
        "tie_word_embeddings": (False, HONOURED),
        "scale_attn_weights": (False, REFUSED),
        "scale_attn_by_inverse_layer_idx": (True, REFUSED),
        "add_cross_attention": (True, REFUSED),
        "reorder_and_upcast_attn": (True, MEANS_NOTHING),
        "is_encoder_decoder": (True, MEANS_NOTHING),
        "initializer_range": (0.5, MEANS_NOTHING),
        "summary_type": ("last", MEANS_NOTHING),
        "summary_use_proj": (False, MEANS_NOTHING),
        "summary_activation": ("tanh", MEANS_NOTHING),
        "summary_proj_to_labels": (False, MEANS_NOTHING),
        "summary_first_dropout": (0.5, MEANS_NOTHING),
        "bos_token_id": (3, SPECIAL_ID),
        "pad_token_id": (3, SPECIAL_ID),
        "hidden_size": (24, REFUSED),
        "max_position_embeddings": (10, REFUSED),
        "num_attention_heads": (2, REFUSED),
        "num_hidden_layers": (3, REFUSED),
    },
    "bert": {
        **EVERY_MODEL,
        "model_type": ("roberta", REFUSED),
        "vocab_size": (13, HONOURED),
        "hidden_size": (24, HONOURED),
        "num_hidden_layers": (3, HONOURED),
        "num_attention_heads": (2, HONOURED),
        "intermediate_size": (5, HONOURED),
        "max_position_embeddings": (10, HONOURED),
        "type_vocab_size": (5, HONOURED),
        "hidden_dropout_prob": (0.3, HONOURED),
        "attention_probs_dropout_prob": (0.3, HONOURED),
        "classifier_dropout": (0.3, REFUSED),
        "layer_norm_eps": (0.2, HONOURED),
        "hidden_act": ("gelu_new", REFUSED),
        "pad_token_id": (3, SPECIAL_ID),
        "is_decoder": (True, REFUSED),
        "add_cross_attention": (True, REFUSED),
        "tie_word_embeddings": (False, REFUSED),
        "is_encoder_decoder": (True, MEANS_NOTHING),
        "initializer_range": (0.5, MEANS_NOTHING),
        "bos_token_id": (3, SPECIAL_ID),
    },
    "t5": {
        **EVERY_MODEL,
        "model_type": ("mt5", REFUSED),
        "vocab_size": (13, HONOURED),
        "d_model": ({"d_model": 24, "d_kv": 8}, HONOURED),
        "d_kv": (8, REFUSED),
        "d_ff": (5, HONOURED),
        "num_layers": (3, HONOURED),
        "num_decoder_layers": (3, REFUSED),
        "num_heads": ({"num_heads": 2, "d_kv": 6}, HONOURED),
        "relative_attention_num_buckets": (16, REFUSED),
        "relative_attention_max_distance": (64, REFUSED),
        "dropout_rate": (0.3, HONOURED),
        "layer_norm_epsilon": (0.2, HONOURED),
        "feed_forward_proj": ("gated-gelu", HONOURED),
        "dense_act_fn": ("silu", HONOURED),
        "is_gated_act": ({"is_gated_act": True, "dense_act_fn": "silu"}, HONOURED),
        "scale_decoder_outputs": (False, HONOURED),
        "tie_word_embeddings": (False, HONOURED),
        "pad_token_id": (3, SPECIAL_ID),
        "is_encoder_decoder": (False, REFUSED),
        "is_decoder": (True, MEANS_NOTHING),
        "initializer_factor": (0.5, MEANS_NOTHING),
        "classifier_dropout": (0.3, MEANS_NOTHING),
        "hidden_size": (24, REFUSED),
        "head_dim": (8, REFUSED),
        "num_attention_heads": (2, REFUSED),
        "num_hidden_layers": (3, REFUSED),
    },
}
CASES = {
    "gpt2": Case("GPT2LMHeadModel", GPT2, 8),
    "bert": Case("BertForMaskedLM", BERT, 8),
    "t5": Case("T5ForConditionalGeneration", T5, 6, 5),
}
CONFIGS = {"gpt2": "GPT2Config", "bert": "BertConfig", "t5": "T5Config"}


@pytest.mark.parametrize("kind", FIELDS)
def test_no_field_of_theirs_is_unknown(kind):
    cls = getattr(transformers, CONFIGS[kind])
    fields = {field.name for field in dataclasses.fields(cls)} | cls().to_dict().keys() | cls.attribute_map.keys()
    assert fields == FIELDS[kind].keys()
    assert cls.attribute_map == KINDS[kind].aliases


@pytest.mark.exhaustive
@pytest.mark.parametrize(("kind", "field"), [(kind, field) for kind in FIELDS for field in FIELDS[kind]])
def test_a_changed_field_changes_our_model_as_theirs_or_is_refused(kind, field):
    value, verdict = FIELDS[kind][field]
    changes = value if isinstance(value, dict) and verdict is HONOURED else {field: value}
    case = CASES[kind]
    changed = case._replace(config={**case.config, **changes})
    untied = kind == "t5" and field in ("scale_decoder_outputs", "tie_word_embeddings")
    if verdict is REFUSED:
        with pytest.raises(ValueError, match=rf"\b{field}\b"):
            config_from_huggingface(config_file(changed) | changes)
        return
    if verdict is SPECIAL_ID:
        assert config_from_huggingface(config_file(changed)) != config_from_huggingface(config_file(case))
        return
    if field not in (
        "return_dict",
        "reorder_and_upcast_attn",
    ):  # the form of their results; for float32 only, see below
        _, problem, solution = solve(changed._replace(untied=untied), seed=15)
        assert max(errors(changed, problem, solution).values()) < BOUND
    is_same = config_from_huggingface(config_file(changed)) == config_from_huggingface(config_file(case))
    assert is_same == (verdict is MEANS_NOTHING or field == "type_vocab_size")  # which is not in our configuration

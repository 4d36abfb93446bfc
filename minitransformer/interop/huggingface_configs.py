"""The config.json of a Hugging Face model, translated into our configuration.

Their libraries leave default values out of the file, so their defaults are listed here. What our models cannot
represent, or is not a number where one belongs, raises an error with the name that it has in the file. Fields that are
not listed here do not change what their models compute from the weights; tests/oracle/test_huggingface_fields.py tries
each of them.
"""

import math
import os
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from minitransformer.checks import check_choice, check_integer, check_number, check_rate, check_switch
from minitransformer.config import TransformerConfig
from minitransformer.interop import huggingface_decoders as decoders
from minitransformer.interop.huggingface_files import read_json
from minitransformer.models.since_2017.bert import bert_config
from minitransformer.models.since_2017.gpt import gpt_config
from minitransformer.models.since_2017.t5 import t5_config
from minitransformer.system.files import kind_of

GPT2_USUAL = {
    "vocab_size": 50257,
    "n_positions": 1024,
    "n_embd": 768,
    "n_layer": 12,
    "n_head": 12,
    "n_inner": None,
    "activation_function": "gelu_new",
    "resid_pdrop": 0.1,
    "embd_pdrop": 0.1,
    "attn_pdrop": 0.1,
    "layer_norm_epsilon": 1e-5,
    "scale_attn_weights": True,
    "scale_attn_by_inverse_layer_idx": False,
    "add_cross_attention": False,
    "tie_word_embeddings": True,
    "bos_token_id": 50256,
    "eos_token_id": 50256,
}
BERT_USUAL = {
    "vocab_size": 30522,
    "hidden_size": 768,
    "num_hidden_layers": 12,
    "num_attention_heads": 12,
    "intermediate_size": 3072,
    "hidden_act": "gelu",
    "hidden_dropout_prob": 0.1,
    "attention_probs_dropout_prob": 0.1,
    "classifier_dropout": None,
    "max_position_embeddings": 512,
    "type_vocab_size": 2,
    "layer_norm_eps": 1e-12,
    "pad_token_id": 0,
    "position_embedding_type": "absolute",
    "is_decoder": False,
    "add_cross_attention": False,
    "tie_word_embeddings": True,
}
T5_USUAL = {
    "vocab_size": 32128,
    "d_model": 512,
    "d_kv": 64,
    "d_ff": 2048,
    "num_layers": 6,
    "num_decoder_layers": None,
    "num_heads": 8,
    "relative_attention_num_buckets": 32,
    "relative_attention_max_distance": 128,
    "dropout_rate": 0.1,
    "layer_norm_epsilon": 1e-6,
    "feed_forward_proj": "relu",
    "pad_token_id": 0,
    "eos_token_id": 1,
    "n_positions": 512,
    "is_encoder_decoder": True,
    "tie_word_embeddings": True,
}

# further names of a field, as their configurations have them
GPT2_ALIASES = {"hidden_size": "n_embd", "max_position_embeddings": "n_positions"}
GPT2_ALIASES |= {"num_attention_heads": "n_head", "num_hidden_layers": "n_layer"}
T5_ALIASES = {"hidden_size": "d_model", "head_dim": "d_kv"}
T5_ALIASES |= {"num_attention_heads": "num_heads", "num_hidden_layers": "num_layers"}

# their names of functions, and ours; "gelu_new" is the form with tanh
ACTIVATIONS = {"gelu_new": "gelu_tanh", "gelu_pytorch_tanh": "gelu_tanh"}
ACTIVATIONS |= {"gelu": "gelu", "relu": "relu", "silu": "silu", "swish": "silu"}
GATED_ACTIVATIONS = {"gelu_new": "geglu_tanh", "gelu_pytorch_tanh": "geglu_tanh"}
GATED_ACTIVATIONS |= {"gelu": "geglu", "silu": "swiglu", "swish": "swiglu"}
# T5's feed_forward_proj: whether it is gated, and their name of the function; only "gated-gelu" has another one
PROJECTIONS = {name: (False, name) for name in ACTIVATIONS}
PROJECTIONS |= {f"gated-{name}": (True, name) for name in GATED_ACTIVATIONS} | {"gated-gelu": (True, "gelu_new")}

SPECIAL_IDS = ("pad_token_id", "bos_token_id", "eos_token_id", "decoder_start_token_id")
# what may be null; null means: as another field says
OPTIONAL = ("n_inner", "num_decoder_layers", "classifier_dropout", *SPECIAL_IDS, *decoders.OPTIONAL)
# of every model: weights that are packed, and layers that differ from each other
NEEDED = {"quantization_config": None, "per_layer_config": None}


def config_from_huggingface(theirs: Mapping[str, Any], **changes: Any) -> TransformerConfig:
    """The config.json of a Hugging Face model, as a dictionary -> TransformerConfig.

    Its "model_type" says which model it is; `changes` replaces single fields of our configuration. In training, their
    T5 has one more dropout, after the last normalization of each stack. It also has no longest sequence; our `max_len`
    is the length it was trained on, if the file gives it, or 512. Raises ValueError, with its name, for a setting that
    we cannot represent, and TypeError for a field of another type, or unless `theirs` is a dictionary.
    """
    kind, given = complete_config(theirs)
    return kind.translate(given, {**_special_ids(given), **changes})


def read_config(folder: str | os.PathLike[str]) -> Any:
    """The config.json in `folder`, with the special ids that its generation_config.json has, if it is there."""
    theirs, generation = read_json(Path(folder) / "config.json"), Path(folder) / "generation_config.json"
    settings = read_json(generation) if kind_of(generation) else {}
    if isinstance(theirs, dict) and isinstance(settings, dict):
        theirs |= {name: settings[name] for name in SPECIAL_IDS if name in settings}
    return theirs


def complete_config(theirs: Mapping[str, Any]) -> tuple["Kind", dict[str, Any]]:
    """The kind of a model, and its configuration with their defaults for what is missing. Every field is checked."""
    if not isinstance(theirs, dict):
        raise TypeError(f"the configuration must be a dictionary, got {type(theirs).__name__}")
    kind = KINDS[check_choice("model_type", theirs.get("model_type"), KINDS)]
    given = {**kind.usual, **theirs}
    for alias, name in kind.aliases.items():
        if alias in theirs:
            if name in theirs and theirs[name] != theirs[alias]:
                raise ValueError(f"{alias} and {name} are one field, but they are {theirs[alias]} and {theirs[name]}")
            given[name] = theirs[alias]
    for name, needed in {**NEEDED, **kind.needed}.items():
        value = given.get(name)
        if type(value) is not type(needed) or value != needed:
            raise ValueError(f"our model can only have {name} = {needed!r}, but this one has {value!r}")
    for name, usual in kind.usual.items():
        if given[name] is not None or name not in OPTIONAL:
            _check_field(name, given[name], usual)
    return kind, given


def _special_ids(given):
    """Our padding, start and end. A negative id is none, and padding that also ends a text marks no padding."""
    for name in SPECIAL_IDS:
        ids = given.get(name)
        several = ids if name == "eos_token_id" and isinstance(ids, list) else [] if ids is None else [ids]
        if any(not isinstance(id, int) or isinstance(id, bool) for id in several):
            kinds = "a whole number, a list of them or null" if name == "eos_token_id" else "a whole number or null"
            raise TypeError(f"{name} must be {kinds}, got {ids!r}")
    end, padding, start = given.get("eos_token_id"), given.get("pad_token_id"), given.get("bos_token_id")
    ends = tuple(id for id in (end if isinstance(end, list) else [end]) if id is not None and id >= 0)
    if given["model_type"] == "t5":
        start = padding if given.get("decoder_start_token_id") is None else given["decoder_start_token_id"]
    ids = {"padding": None if padding in ends else padding, "start": start}
    ids = {name: None if id is None or id < 0 else id for name, id in ids.items()}
    return {**ids, "end": ends[0] if len(ends) == 1 else ends or None}


def _check_field(name, value, usual):
    """TypeError or ValueError unless `value` is of the kind of `usual`, their default."""
    if isinstance(usual, (str, list)):
        return  # names of functions are checked where they are looked up, and lists are needed as they are
    if isinstance(usual, bool):
        check_switch(name, value)
    elif name.startswith(("layer_norm_eps", "rms_norm_eps")):
        if not 0 <= check_number(name, value) < math.inf:
            raise ValueError(f"{name} must be at least 0 and finite, got {value}")
    elif isinstance(usual, float) or name == "classifier_dropout":
        check_rate(name, value)
    elif name not in SPECIAL_IDS:
        check_integer(name, value, least=0 if name == "max_window_layers" else 1)


def _check_heads(given, width, heads):
    """ValueError, with their names, unless the heads share the width equally."""
    if given[width] % given[heads]:
        raise ValueError(
            f"{width} must be a multiple of {heads}, got {width} = {given[width]} and {heads} = {given[heads]}"
        )


def _gpt2(given, changes):
    _check_heads(given, "n_embd", "n_head")
    if given["embd_pdrop"] != given["resid_pdrop"]:
        raise ValueError(
            f"our model has one dropout rate for embd_pdrop and resid_pdrop, "
            f"but this one has {given['embd_pdrop']} and {given['resid_pdrop']}"
        )
    check_choice("activation_function", given["activation_function"], ACTIVATIONS)
    choices = {
        "d_model": given["n_embd"],
        "num_heads": given["n_head"],
        "d_ff": 4 * given["n_embd"] if given["n_inner"] is None else given["n_inner"],
        "num_layers": given["n_layer"],
        "max_len": given["n_positions"],
        "activation": ACTIVATIONS[given["activation_function"]],
        "dropout": given["resid_pdrop"],
        "attention_dropout": given["attn_pdrop"],
        "norm_eps": given["layer_norm_epsilon"],
        "tie_embeddings": given["tie_word_embeddings"],
    }
    return gpt_config(given["vocab_size"], **{**choices, **changes})


def _bert(given, changes):
    _check_heads(given, "hidden_size", "num_attention_heads")
    rate = given["hidden_dropout_prob"]
    if given["classifier_dropout"] not in (None, rate):
        raise ValueError(
            f"our model has one dropout rate for classifier_dropout and hidden_dropout_prob, "
            f"but this one has {given['classifier_dropout']} and {rate}"
        )
    choices = {
        "d_model": given["hidden_size"],
        "num_heads": given["num_attention_heads"],
        "d_ff": given["intermediate_size"],
        "num_layers": given["num_hidden_layers"],
        "max_len": given["max_position_embeddings"],
        "dropout": rate,
        "attention_dropout": given["attention_probs_dropout_prob"],
        "norm_eps": given["layer_norm_eps"],
    }
    return bert_config(given["vocab_size"], **{**choices, **changes})


def _t5(given, changes):
    C, H, N, rate = given["d_model"], given["num_heads"], given["num_layers"], given["dropout_rate"]
    if given["d_kv"] * H != C:
        raise ValueError(
            f"our model can only have d_kv = d_model / num_heads = {C} / {H}, but this one has {given['d_kv']}"
        )
    if given["num_decoder_layers"] not in (None, N):
        raise ValueError(
            f"our model has as many num_decoder_layers as num_layers, "
            f"but this one has {given['num_decoder_layers']} and {N}"
        )
    # old files mark version 1.1 by not being tied; newer files call all tied and have a field for the scaling
    scaled = check_switch("scale_decoder_outputs", given.get("scale_decoder_outputs", given["tie_word_embeddings"]))
    choices = {
        "d_model": C,
        "num_heads": H,
        "d_ff": given["d_ff"],
        "num_layers": N,
        "max_len": given["n_positions"],
        "activation": _t5_activation(given),
        "dropout": rate,
        "attention_dropout": rate,
        "ffn_dropout": rate,
        "norm_eps": given["layer_norm_epsilon"],
        "tie_embeddings": scaled or "inputs",
        "scale_output": scaled,
    }
    return t5_config(given["vocab_size"], **{**choices, **changes})


def _t5_activation(given):
    """Our name of the function between the two matrices: `feed_forward_proj` says it, unless the two fields do."""
    gated, name = PROJECTIONS[check_choice("feed_forward_proj", given["feed_forward_proj"], PROJECTIONS)]
    gated = check_switch("is_gated_act", given.get("is_gated_act", gated))
    table = GATED_ACTIVATIONS if gated else ACTIVATIONS
    return table[check_choice("dense_act_fn", given.get("dense_act_fn", name), table)]


class Kind(NamedTuple):
    """One of their families of models."""

    usual: dict[str, Any]  # their defaults, for fields that the file leaves out
    aliases: dict[str, str]  # further names of fields
    needed: dict[str, Any]  # values that our models require
    translate: Callable[[dict[str, Any], dict[str, Any]], TransformerConfig]  # from (complete dictionary, changes)


KINDS = {
    "gpt2": Kind(
        GPT2_USUAL,
        GPT2_ALIASES,
        {"scale_attn_weights": True, "scale_attn_by_inverse_layer_idx": False, "add_cross_attention": False},
        _gpt2,
    ),
    "bert": Kind(
        BERT_USUAL,
        {},
        {
            "hidden_act": "gelu",
            "position_embedding_type": "absolute",
            "is_decoder": False,
            "add_cross_attention": False,
            "tie_word_embeddings": True,
        },
        _bert,
    ),
    "t5": Kind(
        T5_USUAL,
        T5_ALIASES,
        {
            "relative_attention_num_buckets": 32,
            "relative_attention_max_distance": 128,
            "is_encoder_decoder": True,
        },
        _t5,
    ),
    **{
        kind: Kind(usual, decoders.ALIASES.get(kind, {}), decoders.NEEDED[kind], partial(decoders.decoder_config, kind))
        for kind, usual in decoders.USUAL.items()
    },
}

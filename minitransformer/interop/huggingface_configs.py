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
from minitransformer.functional.since_2017.activations import GATED
from minitransformer.interop import huggingface_decoders as decoders
from minitransformer.interop.huggingface_files import read_json
from minitransformer.interop.huggingface_tables import ONLY, Field
from minitransformer.models.since_2017.bert import bert_config
from minitransformer.models.since_2017.gpt import gpt_config
from minitransformer.models.since_2017.t5 import t5_config
from minitransformer.system.files import kind_of

GPT2_FIELDS = {
    "vocab_size": Field(50257, "vocab_size"),
    "n_positions": Field(1024, "max_len"),
    "n_embd": Field(768, "d_model"),
    "n_layer": Field(12, "num_layers"),
    "n_head": Field(12, "num_heads"),
    "n_inner": Field(None, "d_ff"),
    "activation_function": Field("gelu_new", "activation"),
    "resid_pdrop": Field(0.1, "dropout"),
    "embd_pdrop": Field(0.1, "dropout"),
    "attn_pdrop": Field(0.1, "attention_dropout"),
    "layer_norm_epsilon": Field(1e-5, "norm_eps"),
    "scale_attn_weights": Field(True, ONLY),
    "scale_attn_by_inverse_layer_idx": Field(False, ONLY),
    "add_cross_attention": Field(False, ONLY),
    "tie_word_embeddings": Field(True, "tie_embeddings"),
    "bos_token_id": Field(50256),
    "eos_token_id": Field(50256),
}
BERT_FIELDS = {
    "vocab_size": Field(30522, "vocab_size"),
    "hidden_size": Field(768, "d_model"),
    "num_hidden_layers": Field(12, "num_layers"),
    "num_attention_heads": Field(12, "num_heads"),
    "intermediate_size": Field(3072, "d_ff"),
    "hidden_act": Field("gelu", ONLY),
    "hidden_dropout_prob": Field(0.1, "dropout"),
    "attention_probs_dropout_prob": Field(0.1, "attention_dropout"),
    "classifier_dropout": Field(None, "dropout"),
    "max_position_embeddings": Field(512, "max_len"),
    "type_vocab_size": Field(2),  # an option of our BERT
    "layer_norm_eps": Field(1e-12, "norm_eps"),
    "pad_token_id": Field(0),
    "position_embedding_type": Field("absolute", ONLY),
    "is_decoder": Field(False, ONLY),
    "add_cross_attention": Field(False, ONLY),
    "tie_word_embeddings": Field(True, ONLY),
}
T5_FIELDS = {
    "vocab_size": Field(32128, "vocab_size"),
    "d_model": Field(512, "d_model"),
    "d_kv": Field(64),
    "d_ff": Field(2048, "d_ff"),
    "num_layers": Field(6, "num_layers"),
    "num_decoder_layers": Field(None, "num_layers"),
    "num_heads": Field(8, "num_heads"),
    "relative_attention_num_buckets": Field(32, ONLY),
    "relative_attention_max_distance": Field(128, ONLY),
    "dropout_rate": Field(0.1, "dropout"),
    "layer_norm_epsilon": Field(1e-6, "norm_eps"),
    "feed_forward_proj": Field("relu"),
    "pad_token_id": Field(0),
    "eos_token_id": Field(1),
    "n_positions": Field(512, "max_len"),
    "is_encoder_decoder": Field(True, ONLY),
    "tie_word_embeddings": Field(True),
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
EVERY_MODEL = {"quantization_config": Field(None, ONLY), "per_layer_config": Field(None, ONLY)}


def config_from_huggingface(theirs: Mapping[str, Any], **changes: Any) -> TransformerConfig:
    """The config.json of a Hugging Face model, as a dictionary -> TransformerConfig.

    Its "model_type" says which model it is; `changes` replaces single fields of our configuration. In training, their
    T5 has one more dropout, after the last normalization of each stack. It also has no longest sequence; our `max_len`
    is the length it was trained on, if the file gives it, or 512. Raises ValueError, with its name, for a setting that
    we cannot represent, and TypeError for a field of another type, or unless `theirs` is a dictionary.
    """
    kind, given = complete_config(theirs)
    same: dict[str, Any] = {}  # our fields that have the value of one of theirs, or of several
    first: dict[str, str] = {}
    for name, field in kind.fields.items():
        if field.ours in ("", ONLY) or given[name] is None:
            continue
        value, other = given[name], first.setdefault(field.ours, name)
        if given[other] != value:
            what = "dropout rate" if field.ours == "dropout" else field.ours
            raise ValueError(
                f"our model has one {what} for {name} and {other}, but this one has {value} and {given[other]}"
            )
        if field.ours == "activation":
            value = kind.activations[check_choice(name, value, kind.activations)]
        same[field.ours] = value
    return kind.make(**{**same, **kind.to_ours(given), **_special_ids(given), **changes})


def config_to_huggingface(kind: str, config: TransformerConfig) -> dict[str, Any]:
    """The config.json of a model of theirs of this `kind`: as like `config` as their fields allow it to be.

    Read again, it differs from `config` in what such a model lacks.
    """
    fields, activations = KINDS[kind].fields, KINDS[kind].activations
    written = {name: getattr(config, field.ours) for name, field in fields.items() if field.ours not in ("", ONLY)}
    for name in [name for name in written if fields[name].ours == "activation"]:
        names = [fields[name].usual, *activations]  # of which several may mean the same
        written[name] = next((each for each in names if activations[each] == config.activation), names[0])
    end = list(config.end) if isinstance(config.end, tuple) else config.end
    start = "decoder_start_token_id" if kind == "t5" else "bos_token_id"
    ids = {"pad_token_id": config.padding, start: config.start, "eos_token_id": end}
    return {"model_type": kind, **written, **KINDS[kind].to_theirs(config), **ids}


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
    given = {**{name: field.usual for name, field in kind.fields.items()}, **theirs}
    for alias, name in kind.aliases.items():
        if alias in theirs:
            if name in theirs and theirs[name] != theirs[alias]:
                raise ValueError(f"{alias} and {name} are one field, but they are {theirs[alias]} and {theirs[name]}")
            given[name] = theirs[alias]
    for name, (usual, ours) in {**EVERY_MODEL, **kind.fields}.items():
        value = given.get(name)
        if ours == ONLY and (type(value) is not type(usual) or value != usual):
            raise ValueError(f"our model can only have {name} = {usual!r}, but this one has {value!r}")
    for name, (usual, _) in kind.fields.items():
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


def _gpt2_to_ours(given):
    _check_heads(given, "n_embd", "n_head")
    return {"d_ff": 4 * given["n_embd"] if given["n_inner"] is None else given["n_inner"]}


def _bert_to_ours(given):
    _check_heads(given, "hidden_size", "num_attention_heads")
    return {}


def _t5_to_ours(given):
    C, H, rate = given["d_model"], given["num_heads"], given["dropout_rate"]
    if given["d_kv"] * H != C:
        raise ValueError(
            f"our model can only have d_kv = d_model / num_heads = {C} / {H}, but this one has {given['d_kv']}"
        )
    # old files mark version 1.1 by not being tied; newer files call all tied and have a field for the scaling
    scaled = check_switch("scale_decoder_outputs", given.get("scale_decoder_outputs", given["tie_word_embeddings"]))
    return {
        "activation": _t5_activation(given),
        "attention_dropout": rate,
        "ffn_dropout": rate,
        "tie_embeddings": scaled or "inputs",
        "scale_output": scaled,
    }


def _t5_to_theirs(config):
    gated = config.activation in GATED
    table = GATED_ACTIVATIONS if gated else ACTIVATIONS
    name = next((each for each in table if table[each] == config.activation), "gelu_new")
    return {
        "d_kv": config.head_widths[0],
        "feed_forward_proj": f"gated-{name}" if gated else name,
        "is_gated_act": gated,
        "dense_act_fn": name,
        "tie_word_embeddings": config.scale_output,
    }


def _t5_activation(given):
    """Our name of the function between the two matrices: `feed_forward_proj` says it, unless the two fields do."""
    gated, name = PROJECTIONS[check_choice("feed_forward_proj", given["feed_forward_proj"], PROJECTIONS)]
    gated = check_switch("is_gated_act", given.get("is_gated_act", gated))
    table = GATED_ACTIVATIONS if gated else ACTIVATIONS
    return table[check_choice("dense_act_fn", given.get("dense_act_fn", name), table)]


class Kind(NamedTuple):
    """One of their families of models."""

    fields: dict[str, Field]
    aliases: dict[str, str]  # further names of fields
    make: Callable[..., TransformerConfig]  # our configuration, from those of our fields that are not as it has them
    to_ours: Callable[[dict[str, Any]], dict[str, Any]]  # our fields that need more than `fields` says, from all theirs
    to_theirs: Callable[[TransformerConfig], dict[str, Any]]  # theirs, from our configuration
    activations: dict[str, str] = ACTIVATIONS


KINDS = {
    "gpt2": Kind(GPT2_FIELDS, GPT2_ALIASES, gpt_config, _gpt2_to_ours, lambda config: {}),
    "bert": Kind(BERT_FIELDS, {}, bert_config, _bert_to_ours, lambda config: {}),
    "t5": Kind(T5_FIELDS, T5_ALIASES, t5_config, _t5_to_ours, _t5_to_theirs),
    **{
        kind: Kind(
            fields,
            decoders.ALIASES.get(kind, {}),
            gpt_config,
            partial(decoders.decoder_to_ours, kind),
            partial(decoders.decoder_to_theirs, kind),
            ACTIVATIONS if kind == "starcoder2" else GATED_ACTIVATIONS,
        )
        for kind, fields in decoders.FIELDS.items()
    },
}

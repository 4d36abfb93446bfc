"""The weights of a Hugging Face GPT-2, BERT or T5 in our models. Neither torch nor transformers is needed.

    model = load_huggingface("folder/of/gpt2")                                     # config.json and model.safetensors
    model = model_from_huggingface(theirs.state_dict(), theirs.config.to_dict())   # a model in memory

huggingface_tables.py lists their names and ours. Their models need their own tokenizers, and their special ids differ
from ours: T5's target begins with padding = 0 and ends with 1, GPT-2 has no padding, and its id 0 is a token.
"""

import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from minitransformer.backend import to_host
from minitransformer.checks import check_dtype, check_names
from minitransformer.files import read_bytes, read_safetensors
from minitransformer.interop.huggingface_configs import BERT_USUAL, config_from_huggingface
from minitransformer.interop.huggingface_tables import bert_table, gpt2_table, t5_table
from minitransformer.models.bert import BERT
from minitransformer.models.gpt import GPT
from minitransformer.models.transformer import Transformer

MODELS: dict[str, Any] = {"gpt2": GPT, "bert": BERT, "t5": Transformer}
PREFIX = {"gpt2": "transformer.", "bert": "bert.", "t5": ""}  # their names may begin with it
# tensors in their states that are not weights, or belong to a head that we do not have
IGNORED = {
    "gpt2": r"h\.\d+\.attn\.(bias|masked_bias)",
    "bert": r"embeddings\.position_ids|embeddings\.token_type_ids|cls\.seq_relationship\.(weight|bias)",
    "t5": r"decoder\.block\.0\.layer\.1\.EncDecAttention\.relative_attention_bias\.weight",
}
# second names of one tensor, which may be present or not
COPIES = {
    "gpt2": {"lm_head.weight": "wte.weight"},
    "bert": {
        "cls.predictions.decoder.weight": "embeddings.word_embeddings.weight",
        "cls.predictions.decoder.bias": "cls.predictions.bias",
    },
    "t5": {f"{name}.weight": "shared.weight" for name in ("encoder.embed_tokens", "decoder.embed_tokens", "lm_head")},
}


def load_huggingface(
    folder: str | os.PathLike[str], *, dtype: DTypeLike = np.float32, **changes: Any
) -> GPT | BERT | Transformer:
    """The model in `folder`, from its files config.json and model.safetensors -> GPT, BERT or Transformer.

    `changes` replaces fields of our TransformerConfig, such as dropout, or max_len of a T5. Raises FileNotFoundError
    for a missing file, and ValueError, with the name, for a setting that we cannot represent or a tensor that does not
    fit.
    """
    config, weights = Path(folder) / "config.json", Path(folder) / "model.safetensors"
    try:
        theirs = json.loads(read_bytes(config).decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{config} is not JSON: {error}") from error
    state, _ = read_safetensors(weights)
    return model_from_huggingface(state, theirs, dtype=dtype, **changes)


def model_from_huggingface(
    state: Mapping[str, Any], theirs: Mapping[str, Any], *, dtype: DTypeLike = np.float32, **changes: Any
) -> GPT | BERT | Transformer:
    """As `load_huggingface`, from their `state_dict` and their configuration as a dictionary."""
    dtype = check_dtype(dtype)
    config = config_from_huggingface(theirs, **changes)
    weights = {name: array.astype(dtype, copy=False) for name, array in from_huggingface(state, theirs).items()}
    options: dict[str, int | None] = {}
    if theirs["model_type"] == "bert":
        classes = weights.get("head.classes.b")
        options["num_segments"] = len(weights["embedding.segments.E"])
        options["num_classes"] = None if classes is None else len(classes)
    model = MODELS[theirs["model_type"]](config, **options, seed=None, dtype=dtype)
    model.load_state_dict(weights)
    return model


def from_huggingface(state: Mapping[str, Any], theirs: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """The weights of one of their models under our names -> {our name: array}, as copies on the host.

    `state` {their name: tensor, or anything else that `numpy.asarray` accepts} is from GPT2LMHeadModel, BertForMaskedLM
    (or BertForPreTraining, which has one more head), BertForSequenceClassification or T5ForConditionalGeneration, and
    `theirs` is their configuration as a dictionary. `gpt2_table`, `bert_table` and `t5_table` list the names.

    Raises ValueError, naming the tensors, if one is missing or unexpected or has a wrong shape, or if two names of one
    tensor have different values.
    """
    config, kind = config_from_huggingface(theirs), theirs["model_type"]
    if config.num_layers > len(state):
        raise ValueError(f"the config has {config.num_layers:,} layers, and the state only {len(state)} tensors")
    given = {_plain_name(name, PREFIX[kind]): _to_numpy(tensor) for name, tensor in state.items()}
    classes = given.get("classifier.bias") if kind == "bert" else None
    ignored = IGNORED[kind] + (r"|pooler\.dense\.(weight|bias)" if kind == "bert" and classes is None else "")
    given = {name: array for name, array in given.items() if not re.fullmatch(ignored, name)}
    table = _table(kind, config, theirs, classes)
    shapes = {name: source.shape for source in table.values() for name in source.names}
    _merge_copies(given, {copy: name for copy, name in COPIES[kind].items() if name in shapes}, shapes, theirs)
    check_names("the Hugging Face state does not fit its config", given, shapes)
    for name, shape in shapes.items():
        if given[name].shape != shape:
            raise ValueError(
                f"the Hugging Face state has {name} of shape {given[name].shape}, its config needs {shape}"
            )
    return {name: _gather(given, source) for name, source in table.items()}


def _table(kind, config, theirs, classes):
    if kind == "gpt2":
        return gpt2_table(config)
    if kind == "t5":
        return t5_table(config)
    num_segments = {**BERT_USUAL, **theirs}["type_vocab_size"]
    return bert_table(config, num_segments, None if classes is None else len(classes))


def _plain_name(name, prefix):
    """`name` without the prefix, with the current names of a normalisation's arrays: old files have gamma and beta."""
    name = name.removeprefix(prefix)
    return name.replace("LayerNorm.gamma", "LayerNorm.weight").replace("LayerNorm.beta", "LayerNorm.bias")


def _to_numpy(tensor):
    return tensor.detach().cpu().numpy() if hasattr(tensor, "detach") else to_host(tensor)


def _merge_copies(given, copies, wanted, theirs):
    """Keep one name for each tensor: the one that is `wanted`, or both if both are."""
    for copy, name in copies.items():
        if name not in given and copy in given:
            given[name] = given[copy]
        if copy in wanted and theirs.get("tie_word_embeddings") and name in given:
            given.setdefault(copy, given[name])  # newer files of T5 1.1 are called tied, and then may hold it once
        elif copy not in wanted and copy in given and not np.array_equal(given.pop(copy), given[name]):
            raise ValueError(
                f"by its config the Hugging Face state has one tensor as {copy} and {name}, but they differ"
            )


def _gather(given, source):
    """One array of ours, as a copy."""
    parts = [given[name].T if source.transposed else given[name] for name in source.names]
    return np.array(np.concatenate(parts, axis=-1) if len(parts) > 1 else parts[0], order="C")

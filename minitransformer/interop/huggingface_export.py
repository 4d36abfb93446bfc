"""Our models in the files of Hugging Face, from which their library `transformers` has our logits.

    save_huggingface(model, "folder", tokenizer)         # a GPT, a BERT or a T5
    AutoModelForCausalLM.from_pretrained("folder")       # there

The tables that describe how to read their models also describe how to write them: each of their weights is a part of
one of this library's. A configuration is written in their form and read back, and any difference is something that
their model lacks.
For Gemma 3, whose files have gains less 1, gains below 1/2 are rounded to multiples of 2^-24.
"""

import dataclasses
import json
import os
from pathlib import Path
from typing import Any

import numpy as np

from minitransformer.backend import to_host
from minitransformer.checks import check_choice
from minitransformer.config import TransformerConfig, flat_fields
from minitransformer.interop.huggingface import HEADS, MODELS, PREFIX, TABLES, checked_numbers, stored_as
from minitransformer.interop.huggingface_configs import SPECIAL_IDS, config_from_huggingface, config_to_huggingface
from minitransformer.interop.huggingface_decoders import in_their_order
from minitransformer.interop.huggingface_files import WEIGHTS, read_json
from minitransformer.interop.huggingface_tokenizers import tokenizer_to_huggingface
from minitransformer.models.changed import changed_layers
from minitransformer.system.files import atomic_write, check_folder, delete, kind_of, names_in, write_safetensors
from minitransformer.tokenizers.base import Tokenizer

CONFIG, BY = "config.json", "exported_by"
IN_TRAINING = ("dropout", "attention_dropout", "ffn_dropout", "balance_weight", "z_weight")  # of no effect later
ARCHITECTURES = {"gpt2": "GPT2LMHeadModel", "t5": "T5ForConditionalGeneration", "llama": "LlamaForCausalLM"}
ARCHITECTURES |= {"mistral": "MistralForCausalLM", "qwen2": "Qwen2ForCausalLM", "qwen3": "Qwen3ForCausalLM"}
ARCHITECTURES |= {"gemma3_text": "Gemma3ForCausalLM", "mixtral": "MixtralForCausalLM"}
ARCHITECTURES |= {"qwen3_moe": "Qwen3MoeForCausalLM", "starcoder2": "Starcoder2ForCausalLM"}


def save_huggingface(model: Any, folder: str | os.PathLike[str], tokenizer: Tokenizer | None = None) -> dict[str, Any]:
    """Write `model` and its `tokenizer` to `folder`, as `transformers` reads them -> the content of config.json.

    Which of their models it is follows from its configuration. An earlier export in `folder` is replaced. Raises
    ValueError, with the name of the part, for a model with parts that none of theirs has, a weight that is not finite,
    a tokenizer of a kind that `tokenizers` lacks or with more tokens than the model, and for a folder that holds
    anything but an export; then nothing has changed.
    """
    theirs = family(model)
    files: dict[str, Any] = {}
    if tokenizer is not None:
        if tokenizer.vocab_size > model.config.vocab_size:
            raise ValueError(
                f"the tokenizer has {tokenizer.vocab_size:,} tokens, and its model only {model.config.vocab_size:,}"
            )
        files = tokenizer_to_huggingface(tokenizer, theirs)
    weights = their_weights(model, theirs)
    folder = Path(folder)
    _check_free(folder)
    theirs |= {"dtype": next(iter(weights.values())).dtype.name, BY: "minitransformer"}
    ids = {name: theirs[name] for name in SPECIAL_IDS if theirs.get(name) is not None}
    for name in (WEIGHTS, "tokenizer.json", "tokenizer_config.json", "vocab.txt"):
        delete(folder / name)  # half an export lacks its weights, so that it cannot be loaded
    for name, content in {CONFIG: theirs, "generation_config.json": ids, **files}.items():
        text = content if isinstance(content, str) else json.dumps(content, indent=2, ensure_ascii=False) + "\n"
        with atomic_write(folder / name) as partial:
            partial.write_text(text, "utf-8")
    write_safetensors(folder / WEIGHTS, weights, {"format": "pt"})
    return theirs


def family(model: Any) -> dict[str, Any]:
    """The config.json of the model of theirs that computes what `model` does. ValueError if there is none."""
    for name, kind in changed_layers(model).items():
        raise ValueError(
            f"{name or 'the model'} ({kind}) is not what a configuration builds, and no Hugging Face model has it"
        )
    check_choice("the class of an exported model", type(model).__name__, {cls.__name__: 0 for cls in MODELS.values()})
    C = _explicit(model.config)
    found: list[tuple[list[str], dict[str, Any]]] = []
    for kind, cls in MODELS.items():
        if type(model) is cls:
            theirs = config_to_huggingface(kind, C) | _of_options(kind, getattr(model, "options", {}))
            try:
                read, own = _as_computed(config_from_huggingface(theirs)), _as_computed(C)
                pairs = {name: (read.get(name), own.get(name)) for name in {**own, **read}}
                lacking = [f"{name} = {a!r}, not {b!r}" for name, (a, b) in pairs.items() if a != b]
            except ValueError as error:
                lacking = [str(error)]
            if not lacking:
                return theirs
            found.append((lacking, theirs))
    lacking, theirs = min(found, key=lambda each: len(each[0]))
    lacking = list(dict.fromkeys(lacking))
    more = f", and {len(lacking) - 4} more differences" if len(lacking) > 4 else ""
    raise ValueError(
        f"no Hugging Face model that we know computes what this {type(model).__name__} does: the nearest is "
        f"{theirs['model_type']}, where {', '.join(lacking[:4])}{more}"
    )


def _explicit(config: TransformerConfig) -> TransformerConfig:
    """The same model, with every size said."""
    d_k, d_v = config.head_widths
    heads = config.num_kv_heads or config.num_heads
    kind = "full" if config.attention == "tiled" else config.attention  # which is the same function
    return dataclasses.replace(config, num_kv_heads=heads, d_k=d_k, d_v=d_v, attention=kind)


def _as_computed(config):
    """The flat fields of a configuration that decide what a trained model computes."""
    config = _explicit(config)
    bias = config.bias if config.qkv_bias is None else config.qkv_bias
    fields = flat_fields(config) | {"final_norm": config.has_final_norm, "qkv_bias": bias, "end": config.ends}
    return {name: value for name, value in fields.items() if name not in IN_TRAINING}


def _of_options(kind, options):
    """What the options of our BERT say in config.json: the class, the segments and the classes."""
    if kind != "bert":
        return {"architectures": [ARCHITECTURES[kind]]}
    classes = options["num_classes"]
    name = "BertForMaskedLM" if classes is None else "BertForSequenceClassification" if classes else "BertModel"
    labels = {str(i): f"LABEL_{i}" for i in range(classes or 0)}
    labelled = {"id2label": labels, "label2id": {label: int(i) for i, label in labels.items()}} if labels else {}
    return {"architectures": [name], "type_vocab_size": options["num_segments"], **labelled}


def their_weights(model: Any, theirs: dict[str, Any]) -> dict[str, np.ndarray]:
    """{their name: array} of all weights of `model` for their model with the configuration `theirs`."""
    kind, weights = theirs["model_type"], {}
    prefix = "" if theirs["architectures"] == ["BertModel"] else PREFIX[kind]
    parameters = dict(model.named_parameters())
    for name, source in TABLES[kind](model.config, **getattr(model, "options", {})).items():
        array = checked_numbers(name, to_host(parameters[name].data), None)
        for tensor, part in stored_as(array, source):
            part = in_their_order(part.T, tensor.head).T if tensor.head else part
            part = part - part.dtype.type(tensor.shift) if tensor.shift else part
            weights[tensor.name if tensor.name.startswith(HEADS) else prefix + tensor.name] = part
    return weights


def _check_free(folder: Path) -> None:
    """ValueError or OSError unless `folder` can be written and is new, empty or an earlier export."""
    config = read_json(folder / CONFIG) if kind_of(folder / CONFIG) == "file" else {}
    others = names_in(folder)
    if others and not (isinstance(config, dict) and config.get(BY)):
        raise ValueError(f"{folder} is not an export, and holds {others[0]}: choose another folder")
    check_folder(folder)

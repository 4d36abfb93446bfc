"""LoRA adapters in the files of PEFT, Hugging Face's library of adapters: adapter_config.json and a safetensors file.

    save_adapters(model, "adapters")     # a few kB: the model that they belong to is not in there
    load_adapters(model, "adapters")     # into that model without adapters

PEFT stores both matrices transposed, lora_A (r, I) and lora_B (O, r), also for GPT-2, whose own are (I, O). A Linear
here may join several matrices of the Hugging Face model, such as query, key and value, and where RoPE pairs features
of a head differently, the columns of B are reordered. The conversion is still exact:

    saved     three adapters with the same A, each with its part of B = [B_q | B_k | B_v]
    loaded    that again, if all A are equal; else A = [A_q | A_k | A_v] and B = diag(B_q, B_k, B_v), of rank 3r
"""

import itertools
import json
import math
import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from minitransformer.backend import to_host
from minitransformer.checks import check_integer, check_number
from minitransformer.config import Rope
from minitransformer.core import Layer, Parameter
from minitransformer.interop.huggingface import HEADS, MODELS, PREFIX, TABLES, checked_numbers
from minitransformer.interop.huggingface_decoders import decoder_kind, in_our_order, in_their_order
from minitransformer.interop.huggingface_files import StoredTensor, read_json, stored_in
from minitransformer.interop.huggingface_tables import Tensor
from minitransformer.layers.since_2017.lora import LoRALinear, add_lora, check_place, linear_places, lora_adapters
from minitransformer.models.since_2017.gpt import GPT
from minitransformer.system.files import atomic_write, write_safetensors

CONFIG, WEIGHTS = "adapter_config.json", "adapter_model.safetensors"
# Fields with only these values: other ways to start an adapter change the model's own weights.
NEEDED = {"peft_type": ("LORA",), "bias": ("none",), "init_lora_weights": (True, False, "gaussian", "orthogonal")}
# Fields with any value: the tensors' names say where adapters are, and dropout is for training. Any other field that is
# set makes an adapter something else.
HARMLESS = {"r", "lora_alpha", "lora_dropout", "fan_in_fan_out", "inference_mode", "task_type", "peft_version"}
HARMLESS |= {"revision", "auto_mapping", "base_model_name_or_path", "target_modules", "exclude_modules"}
HARMLESS |= {"layers_to_transform", "layers_pattern", "megatron_core", "qalora_group_size"}


def save_adapters(model: Layer, folder: str | os.PathLike[str]) -> None:
    """Write the adapters that `add_lora` has put into `model` to `folder`, as PEFT does.

    The names are those of GPT-2, BERT, T5 or a decoder such as Llama if `model` has just their weights, so that PEFT
    can load the files into theirs; otherwise they are ours. A lower rank than the highest is filled up with zeros.
    Raises ValueError for a model without adapters, and for what the files cannot hold: other parameters that are not
    frozen, or several scales.
    """
    adapters, (prefix, modules) = lora_adapters(model), their_modules(model)
    if not adapters:
        raise ValueError("the model has no adapters to save: add_lora puts them in")
    for name, parameter in base_parameters(model).items():
        if not parameter.frozen:
            raise ValueError(f"{name} is not frozen, and files of adapters cannot hold it: save the whole model")
    scales = {adapter.s for adapter in adapters.values()}
    if len(scales) > 1:
        raise ValueError(f"files of adapters have one alpha / rank, and this model's adapters have {len(scales)}")
    r = max(len(adapter.B.data) for adapter in adapters.values())
    arrays, targets = {}, []
    for name, adapter in adapters.items():
        A, B = to_host(adapter.A.data).T, to_host(adapter.B.data)
        fill = (0, r - len(B))
        for tensor, columns in zip(modules[name], columns_of(modules[name]), strict=True):
            module = module_of(tensor) if tensor.name.startswith(HEADS) else prefix + module_of(tensor)
            part = in_their_order(B[:, columns], tensor.head) if tensor.head else B[:, columns]
            arrays[f"base_model.model.{module}.lora_A.weight"] = np.pad(A, (fill, (0, 0)))
            arrays[f"base_model.model.{module}.lora_B.weight"] = np.pad(part.T, ((0, 0), fill))
            targets.append(module)
    config: dict[str, Any] = {name: values[0] for name, values in NEEDED.items()}
    config |= {"r": r, "lora_alpha": float(f"{scales.pop() * r:.15g}"), "target_modules": targets}
    config |= {"fan_in_fan_out": prefix == PREFIX["gpt2"], "inference_mode": True}
    write_safetensors(Path(folder) / WEIGHTS, arrays, {"format": "pt"})
    with atomic_write(Path(folder) / CONFIG) as partial:
        partial.write_text(json.dumps(config, indent=2) + "\n", "utf-8")


def load_adapters(model: Layer, folder: str | os.PathLike[str]) -> dict[str, LoRALinear]:
    """Freeze `model`, and put the adapters in `folder`, PEFT's or ours, around its Linears -> {our name: adapter}.

    Their lora_dropout is for training, and is left out: ours has none. Raises FileNotFoundError for a missing file, and
    ValueError or TypeError, with its name, for a kind of adapter that we do not have, for a tensor that does not fit,
    and for a Linear that has an adapter already. In these cases the model has not changed.
    """
    config, (prefix, modules) = checked_config(Path(folder) / CONFIG), their_modules(model)
    pairs = {name.removeprefix(prefix): pair for name, pair in read_pairs(Path(folder) / WEIGHTS).items()}
    joined = {}
    for name, _, _, layer in linear_places(model):
        if any(module_of(tensor) in pairs for tensor in modules[name]):
            check_place(name, layer, config["r"])
            given = {tensor: pairs.pop(module_of(tensor), {}) for tensor in modules[name]}
            joined[name] = join(given, layer.W, config["r"])
            check_place(name, layer, len(joined[name][1]))
    if pairs or not joined:
        which = f"an adapter for {min(pairs)}, which this model does not have" if pairs else "no adapters"
        raise ValueError(f"{folder} has {which}")
    adapters = add_lora(model, list(joined), config["r"], config["lora_alpha"])
    for name, adapter in adapters.items():
        adapter.A, adapter.B = map(Parameter, joined[name])
    return adapters


def base_parameters(model: Layer) -> dict[str, Parameter]:
    """{name: Parameter} of `model` as it is without its adapters."""
    added = {f"{name}.{matrix}" for name in lora_adapters(model) for matrix in "AB"}
    return {name: parameter for name, parameter in model.named_parameters() if name not in added}


def their_modules(model: Layer) -> tuple[str, dict[str, tuple[Tensor, ...]]]:
    """The prefix of the names in a Hugging Face model, and for each Linear here the matrices there that it joins.

    If no Hugging Face model has exactly these weights, there is no prefix, and each Linear keeps its own name.
    """
    kind = next((kind for kind, cls in MODELS.items() if type(model) is cls), "")
    if type(model) is GPT and isinstance(model.config.positions, Rope):
        kind = decoder_kind(model.config)
    table = TABLES[kind](model.config, **getattr(model, "options", {})) if kind else {}  # type: ignore[attr-defined]
    sizes = {name: sum(math.prod(tensor.shape) for tensor in source.tensors) for name, source in table.items()}
    if sizes != {name: parameter.data.size for name, parameter in base_parameters(model).items()}:
        return "", {name: (Tensor(f"{name}.weight", layer.W.data.shape),) for name, _, _, layer in linear_places(model)}
    return PREFIX[kind], {name: table[f"{name}.W"].tensors for name, *_ in linear_places(model)}


def module_of(tensor: Tensor) -> str:
    """The module that a matrix of theirs belongs to."""
    return tensor.name.removesuffix(".weight")


def columns_of(tensors: Iterable[Tensor]) -> list[slice]:
    """Which columns of our W are those of each of their matrices."""
    ends = list(itertools.accumulate(tensor.shape[0 if tensor.transposed else 1] for tensor in tensors))
    return [slice(*ends_of_one) for ends_of_one in itertools.pairwise([0, *ends])]


def checked_config(path: Path) -> dict[str, Any]:
    """The configuration of adapters at `path`. ValueError or TypeError, with its name, for what we do not have."""
    config = read_json(path)
    if not isinstance(config, dict):
        raise ValueError(f"{path} is not a dictionary")
    for name, (usual, *others) in NEEDED.items():
        if config.get(name, usual) not in (usual, *others):
            raise ValueError(f"our adapters can only have {name} = {usual!r}, but {path} has {config[name]!r}")
    for name, value in config.items():
        if value and name not in HARMLESS | NEEDED.keys():
            raise ValueError(f"our adapters cannot have {name}, but {path} has {value!r}")
    checked: dict[str, Any] = {"r": None, "lora_alpha": None, **config}
    check_integer("r", checked["r"], least=1)
    check_number("lora_alpha", checked["lora_alpha"])
    return checked


def read_pairs(path: Path) -> dict[str, dict[str, StoredTensor]]:
    """{name of a module: {"A": lora_A, "B": lora_B}}. ValueError for any other tensor, and for one of the two alone."""
    pairs: dict[str, dict[str, StoredTensor]] = {}
    for name, tensor in stored_in(path).items():
        match = re.fullmatch(r"base_model\.model\.(.+)\.lora_([AB])\.weight", name)
        if match is None:
            raise ValueError(f"{path} has {name}, which is not a matrix of an adapter")
        pairs.setdefault(match[1], {})[match[2]] = tensor
    for module, pair in pairs.items():
        if len(pair) < 2:
            raise ValueError(f"{path} has only lora_{min(pair)} of the adapter for {module}")
    return pairs


def join(pairs: dict[Tensor, dict[str, StoredTensor]], W: Parameter, r: int) -> tuple[np.ndarray, np.ndarray]:
    """One adapter's A (I, R) and B (R, O), from those of the modules that W joins, if they have one."""
    (fan_in, fan_out), dtype = W.data.shape, W.data.dtype
    places = zip(pairs.items(), columns_of(pairs), strict=True)
    given = [(tensor, columns, pair) for (tensor, pair), columns in places if pair]
    A, B = np.zeros((fan_in, len(given), r), dtype), np.zeros((len(given), r, fan_out), dtype)
    for k, (tensor, columns, pair) in enumerate(given):
        part = B[k, :, columns]
        for stored, place in ((pair["A"], A[:, k].T), (pair["B"], part.T)):
            if stored.shape != place.shape:
                raise ValueError(f"{stored.path} has {stored.name} of shape {stored.shape}, we need {place.shape}")
            place[...] = checked_numbers(stored.name, stored, dtype)
        part[...] = in_our_order(part, tensor.head) if tensor.head else part
    if len(given) == len(pairs) and (A[:, :1] == A).all():  # as `save_adapters` writes them
        A, B = A[:, :1], B.sum(axis=0, keepdims=True)
    return np.ascontiguousarray(A).reshape(fan_in, -1), B.reshape(-1, fan_out)

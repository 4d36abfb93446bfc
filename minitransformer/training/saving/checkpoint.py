"""Saving and loading a model as a safetensors file, with its configuration in the header.

The header has a checksum of everything else, so a file in which a single bit has changed is refused. Files of version 1
have no checksum and are read without one. A configuration says which of the library's layers a model has. A model with
other layers is a file of version 3, which also has the classes of all layers, and is loaded into a model that is given.
"""

import dataclasses
import inspect
import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from minitransformer.checks import check_choice, check_names
from minitransformer.config import TransformerConfig, flat_fields, nested_fields
from minitransformer.config.claims import least_weights, table_sizes
from minitransformer.models import Transformer
from minitransformer.models.before_2017.convolutional import ConvLM
from minitransformer.models.before_2017.recurrent import Seq2Seq
from minitransformer.models.changed import changed_layers, class_names
from minitransformer.models.since_2017.bert import BERT
from minitransformer.models.since_2017.gpt import GPT
from minitransformer.models.since_2017.vision import ViT
from minitransformer.system.files import checksum, kind_of, read_safetensors, write_safetensors

FORMAT = "minitransformer-2"
WITH_CLASSES = "minitransformer-3"
BEFORE_CHECKSUMS = "minitransformer-1"
EXTRA = "training/"  # prefix of the names of arrays that do not belong to the model
MODELS = {model.__name__: model for model in (Transformer, GPT, BERT, ConvLM, Seq2Seq, ViT)}
FIELDS = ("model", "config", "options", "metadata")  # of the header, besides its format and checksum
LARGEST_TABLE = 2**27  # numbers in a table of positions, which is not stored but computed from the config


def check_restorable(model: Any) -> None:
    """ValueError, with the way out, if the configuration of `model` is not enough to build it again."""
    changed = changed_layers(model)
    if changed:
        name, kind = next(iter(changed.items()))
        rest = f", and {len(changed) - 1} more of its layers are of this sort" if len(changed) > 1 else ""
        raise ValueError(
            f"{name or 'the model'} ({kind}) is not what a saved configuration builds{rest}, so load_checkpoint(path) "
            "could not restore this model: save it with own_layers=True, and load it into a model that you have built, "
            "with load_checkpoint(path, model=...)"
        )


def save_checkpoint(
    path: str | Path,
    model: Any,
    extra_arrays: Mapping[str, np.ndarray] | None = None,
    *,
    own_layers: bool = False,
    **metadata: Any,
) -> None:
    """Write the weights and configuration of `model`, and any further `metadata` that JSON can hold, to `path`.

    The file gets its name only when it is complete, so nobody reads half a file. `extra_arrays` {name: array on the
    host} are returned by `load_with_arrays` alone. A model with layers that its configuration does not build, or
    without a configuration, is refused with a ValueError unless `own_layers`; then `load_checkpoint` must be given a
    model. Raises TypeError or ValueError for metadata that JSON cannot hold.
    """
    if not own_layers:
        check_restorable(model)
    config = model.config if dataclasses.is_dataclass(getattr(model, "config", None)) else None
    header = {
        "format": FORMAT,
        "model": type(model).__name__,
        "config": json.dumps({} if config is None else flat_fields(config)),
        "options": json.dumps(getattr(model, "options", {})),
        "metadata": _to_json(metadata),
    }
    if own_layers and changed_layers(model):
        header |= {"format": WITH_CLASSES, "layers": json.dumps(class_names(model))}
    arrays = {**model.state_dict(), **{EXTRA + name: array for name, array in (extra_arrays or {}).items()}}
    write_safetensors(path, arrays, {**header, "checksum": checksum(header, arrays)})


def _to_json(metadata):
    try:
        return json.dumps(metadata)
    except (TypeError, ValueError) as error:
        raise type(error)(f"metadata must be JSON serializable: {error}") from error


def load_checkpoint(path: str | Path, model: Any = None) -> tuple[Any, dict[str, Any]]:
    """The model that was saved at `path`, a file or the folder of a finished run, and its metadata -> (model, dict).

    With `model`, its weights are replaced by those of the file, and it is returned. It must have the configuration, the
    names and shapes of the weights and, by their names, the classes of layers that were saved; the library's files of
    its own models name no classes. Needed for a model that was saved with `own_layers`.

    Raises ValueError, naming the path, if the file was not written by `save_checkpoint` or has changed since, if it
    does not fit `model`, or if it needs one; and OSError if it cannot be read.
    """
    model, metadata, _ = load_with_arrays(path, model)
    return model, metadata


def load_with_arrays(path: str | Path, model: Any = None) -> tuple[Any, dict[str, Any], dict[str, np.ndarray]]:
    """As `load_checkpoint`, and the further arrays that were saved with the model -> (model, dict, {name: array})."""
    of_run = os.path.join(path, "model.safetensors")
    path = of_run if kind_of(of_run) == "file" else path
    arrays, header = read_safetensors(path)
    try:
        _check_header(header, arrays)
        extra = {name.removeprefix(EXTRA): arrays.pop(name) for name in list(arrays) if name.startswith(EXTRA)}
        metadata, classes = _object(header, "metadata"), _object(header, "layers")
        config = nested_fields(_object(header, "config"))
        if model is None and not classes:
            return _rebuild(header, config, arrays), metadata, extra
    except (ValueError, TypeError, OverflowError, MemoryError) as error:
        raise ValueError(f"{path} is not a minitransformer checkpoint: {error}") from error
    if model is None:
        raise ValueError(
            f"{path} was saved with layers that are not the library's: build a model with the same layers, and load "
            "the weights into it with load_checkpoint(path, model=...)"
        )
    try:
        _check_same_model(model, config, classes)
        model.load_state_dict(arrays)
    except ValueError as error:
        raise ValueError(f"{path} does not fit the model that it is loaded into: {error}") from error
    return model, metadata, extra


def _check_same_model(model, config, classes):
    """ValueError unless `model` has the saved configuration and, if they were saved, layers of the saved classes.

    A class is compared without its module, which is `__main__` in the program that defines it.
    """
    for name, value in config.items():
        own = getattr(getattr(model, "config", None), name, value)
        if own != (tuple(value) if isinstance(value, list) else value):
            raise ValueError(f"its config has {name} = {value!r}, and the model's has {own!r}")
    if classes:
        own_classes = class_names(model)
        check_names("its layers are not those of the model", classes, own_classes)
        for name, kind in classes.items():
            if str(kind).rpartition(".")[2] != own_classes[name].rpartition(".")[2]:
                raise ValueError(f"{name or 'the model'} was saved as {kind}, and the model has {own_classes[name]}")


def _check_header(header, arrays):
    """ValueError unless the file has a known version and has not changed since it was written."""
    version = header.get("format")
    if version not in (WITH_CLASSES, FORMAT, BEFORE_CHECKSUMS):
        known = f"this version reads {BEFORE_CHECKSUMS} to {WITH_CLASSES}"
        if _number(version) > _number(WITH_CLASSES):
            raise ValueError(f"its format is {version}, and {known}: upgrade to read it")
        raise ValueError(f"its format is {version or 'not given'}, and {known}")
    given = {**dict.fromkeys(("model", "options")), **header} if version == BEFORE_CHECKSUMS else header
    wanted = ("format", *FIELDS, *{FORMAT: ["checksum"], WITH_CLASSES: ["checksum", "layers"]}.get(version, ()))
    check_names("its header does not fit its format", given, dict.fromkeys(wanted))
    if version != BEFORE_CHECKSUMS and header.pop("checksum") != checksum(header, arrays):
        raise ValueError(
            "its checksum does not match its content: the file is damaged or was changed; use another copy"
        )


def _number(version):
    """3 for "minitransformer-3", 0 for any other text."""
    found = re.fullmatch(r"minitransformer-(\d{1,9})", version or "", re.ASCII)
    return int(found[1]) if found else 0


def _object(header, name):
    """The field `name` of the header, which must hold a JSON object."""
    try:
        content = json.loads(header.get(name, "{}"))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"its {name} is not JSON: {error}") from error
    if not isinstance(content, dict):
        raise ValueError(f"its {name} must be a JSON object, got {type(content).__name__}")
    return content


def _rebuild(header, fields, state):
    """A model of the class in the header and a configuration of these `fields`, with the weights of `state`."""
    if not state:
        raise ValueError("it has no weights")
    model_class = MODELS[check_choice("model", header.get("model", "Transformer"), MODELS)]
    options = _object(header, "options")
    config_class = getattr(model_class, "config_class", TransformerConfig)
    known = {field.name: field for field in dataclasses.fields(config_class)}
    _check_fields("config", fields, known)
    _check_fields("options", options, set(inspect.signature(model_class).parameters) - {"config", "seed", "dtype"})
    for name, field in known.items():
        if name not in fields and field.default is dataclasses.MISSING:
            raise ValueError(f"its config has no {name}")
    config = config_class(**fields)
    _check_size(config, options, state)
    model = model_class(config, **options, seed=None, dtype=next(iter(state.values())).dtype)
    model.load_state_dict(state)
    return model


def _check_fields(what, fields, known):
    for name in fields:
        if name not in known:
            raise ValueError(f"its {what} has an unknown field {name!r}")


def _check_size(config, options, state):
    """ValueError if a model of `config` has more weights than the file. Called before the model allocates memory."""
    numbers = sum(array.size for array in state.values())
    needed = {**least_weights(config), **{name: value for name, value in options.items() if isinstance(value, int)}}
    for name, count in needed.items():
        if count > numbers:
            raise ValueError(f"its config has {name} = {count:,}, and the file has only {numbers:,} weights")
    for name, count in table_sizes(config).items():
        if count > max(LARGEST_TABLE, numbers):
            raise ValueError(f"its config has {name} = {count:,}, and the limit is {LARGEST_TABLE:,}")

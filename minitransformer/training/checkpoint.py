"""Saving and loading a model as a safetensors file, with its configuration in the header.

The header has a checksum of everything else, so a file in which a single bit has changed is refused. Files of version 1
have no checksum and are read without one.
"""

import dataclasses
import inspect
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from minitransformer.checks import check_choice, check_names
from minitransformer.models import BERT, GPT, ConvLM, Seq2Seq, Transformer
from minitransformer.system.files import checksum, read_safetensors, write_safetensors

FORMAT = "minitransformer-2"
BEFORE_CHECKSUMS = "minitransformer-1"
EXTRA = "training/"  # prefix of the names of arrays that do not belong to the model
MODELS = {model.__name__: model for model in (Transformer, GPT, BERT, ConvLM, Seq2Seq)}
FIELDS = ("model", "config", "options", "metadata")  # of the header, besides its format and checksum
LARGEST_TABLE = 2**27  # numbers in a table of positions, which is not stored but computed from the config


def save_checkpoint(
    path: str | Path, model: Any, extra_arrays: Mapping[str, np.ndarray] | None = None, **metadata: Any
) -> None:
    """Write the weights and configuration of `model`, and any further `metadata` that JSON can hold, to `path`.

    The file gets its name only when it is complete, so nobody reads half a file. `extra_arrays` {name: array on the
    host} are returned by `load_with_arrays` alone. Raises TypeError or ValueError for metadata that JSON cannot hold.
    """
    header = {
        "format": FORMAT,
        "model": type(model).__name__,
        "config": json.dumps(dataclasses.asdict(model.config)),
        "options": json.dumps(getattr(model, "options", {})),
        "metadata": _to_json(metadata),
    }
    arrays = {**model.state_dict(), **{EXTRA + name: array for name, array in (extra_arrays or {}).items()}}
    write_safetensors(path, arrays, {**header, "checksum": checksum(header, arrays)})


def _to_json(metadata):
    try:
        return json.dumps(metadata)
    except (TypeError, ValueError) as error:
        raise type(error)(f"metadata must be JSON serializable: {error}") from error


def load_checkpoint(path: str | Path) -> tuple[Any, dict[str, Any]]:
    """The model that was saved at `path`, and its metadata -> (one of MODELS, dict).

    Raises ValueError, naming the path, if the file was not written by `save_checkpoint` or has changed since, and
    OSError if it cannot be read.
    """
    model, metadata, _ = load_with_arrays(path)
    return model, metadata


def load_with_arrays(path: str | Path) -> tuple[Any, dict[str, Any], dict[str, np.ndarray]]:
    """As `load_checkpoint`, and the further arrays that were saved with the model -> (model, dict, {name: array})."""
    arrays, header = read_safetensors(path)
    try:
        _check_header(header, arrays)
        extra = {name.removeprefix(EXTRA): arrays.pop(name) for name in list(arrays) if name.startswith(EXTRA)}
        return _rebuild(header, arrays), _object(header, "metadata"), extra
    except (ValueError, TypeError, OverflowError, MemoryError) as error:
        raise ValueError(f"{path} is not a minitransformer checkpoint: {error}") from error


def _check_header(header, arrays):
    """ValueError unless the file has a known version and has not changed since it was written."""
    version = header.get("format")
    if version not in (FORMAT, BEFORE_CHECKSUMS):
        known = f"this version reads {BEFORE_CHECKSUMS} and {FORMAT}"
        if _number(version) > _number(FORMAT):
            raise ValueError(f"its format is {version}, and {known}: upgrade to read it")
        raise ValueError(f"its format is {version or 'not given'}, and {known}")
    given = {**dict.fromkeys(("model", "options")), **header} if version == BEFORE_CHECKSUMS else header
    wanted = ("format", *FIELDS, *(["checksum"] if version == FORMAT else []))
    check_names("its header does not fit its format", given, dict.fromkeys(wanted))
    if version == FORMAT and header.pop("checksum") != checksum(header, arrays):
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


def _rebuild(header, state):
    """A model of the configuration in the header, with the weights of `state`."""
    if not state:
        raise ValueError("it has no weights")
    model_class = MODELS[check_choice("model", header.get("model", "Transformer"), MODELS)]
    fields, options = _object(header, "config"), _object(header, "options")
    fields.pop("label_smoothing", None)  # version 0.1 stored it here; now it belongs to the loss
    known = {field.name: field for field in dataclasses.fields(model_class.config_class)}
    _check_fields("config", fields, known)
    _check_fields("options", options, set(inspect.signature(model_class).parameters) - {"config", "seed", "dtype"})
    for name, field in known.items():
        if name not in fields and field.default is dataclasses.MISSING:
            raise ValueError(f"its config has no {name}")
    config = model_class.config_class(**fields)
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
    needed = {**config.least_weights(), **{name: value for name, value in options.items() if isinstance(value, int)}}
    for name, count in needed.items():
        if count > numbers:
            raise ValueError(f"its config has {name} = {count:,}, and the file has only {numbers:,} weights")
    for name, count in config.table_sizes().items():
        if count > max(LARGEST_TABLE, numbers):
            raise ValueError(f"its config has {name} = {count:,}, and the limit is {LARGEST_TABLE:,}")

"""Saving and loading a model as a safetensors file, with its configuration in the header."""

import dataclasses
import json
from pathlib import Path

from minitransformer.files import written_whole
from minitransformer.models.config import TransformerConfig
from minitransformer.models.transformer import Transformer

FORMAT = "minitransformer-1"


def save_checkpoint(path, model, **metadata):
    """Write the weights and configuration of `model`, and any further `metadata` that JSON can hold, to `path`.

    Written beside it first and then renamed, so that a reader never finds half a file.
    """
    header = {
        "format": FORMAT,
        "config": json.dumps(dataclasses.asdict(model.config)),
        "metadata": json.dumps(metadata),
    }
    from safetensors.numpy import save  # here, so that all else runs on a bare machine without it

    with written_whole(path) as partial:
        partial.write_bytes(save(model.state_dict(), metadata=header))


def load_checkpoint(path):
    """The model that was saved at `path`, and its metadata -> (Transformer, dict).

    Raises ValueError, naming the path, if the file is not one that `save_checkpoint` wrote, OSError if there is none.
    """
    from safetensors import SafetensorError, safe_open

    if not Path(path).is_file():
        raise FileNotFoundError(f"there is no file {path}")
    try:
        with safe_open(path, framework="numpy") as file:
            header = file.metadata() or {}
            if header.get("format") != FORMAT:
                raise ValueError(f"its format is not {FORMAT}")
            state = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - not a dict
        return _rebuild(header, state), json.loads(header["metadata"])
    except (SafetensorError, ValueError, TypeError, KeyError) as error:
        raise ValueError(f"{path} is not a checkpoint of minitransformer: {error}") from error


def _rebuild(header, state):
    """A model of the configuration in the header, with the weights of `state`."""
    if not state:
        raise ValueError("it has no weights")
    config = TransformerConfig(**json.loads(header["config"]))
    model = Transformer(config, seed=None, dtype=next(iter(state.values())).dtype)
    model.load_state_dict(state)
    return model

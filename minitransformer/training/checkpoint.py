"""Saving and loading a model as a safetensors file, with its configuration in the header."""

import dataclasses
import json

from minitransformer.checks import check_choice
from minitransformer.files import read_safetensors, write_safetensors
from minitransformer.models import BERT, GPT, Transformer, TransformerConfig

FORMAT = "minitransformer-1"
MORE = "training/"  # before the names of arrays that are not the model's
MODELS = {"Transformer": Transformer, "GPT": GPT, "BERT": BERT}


def save_checkpoint(path, model, more_arrays=None, **metadata):
    """Write the weights and configuration of `model`, and any further `metadata` that JSON can hold, to `path`.

    Written beside it first and then renamed, so that a reader never finds half a file. `more_arrays` {name: array}
    are what only `load_more` reads.
    """
    header = {
        "format": FORMAT,
        "model": type(model).__name__,
        "config": json.dumps(dataclasses.asdict(model.config)),
        "options": json.dumps(getattr(model, "options", {})),
        "metadata": json.dumps(metadata),
    }
    more = {MORE + name: array for name, array in (more_arrays or {}).items()}
    write_safetensors(path, {**model.state_dict(), **more}, header)


def load_checkpoint(path):
    """The model that was saved at `path`, and its metadata -> (Transformer, GPT or BERT, dict).

    Raises ValueError, naming the path, if the file is not one that `save_checkpoint` wrote, OSError if there is none.
    """
    model, metadata, _ = load_more(path)
    return model, metadata


def load_more(path):
    """As `load_checkpoint`, and the further arrays that were saved with the model -> (model, dict, {name: array})."""
    arrays, header = read_safetensors(path)
    more = {name.removeprefix(MORE): arrays.pop(name) for name in list(arrays) if name.startswith(MORE)}
    try:
        if header.get("format") != FORMAT:
            raise ValueError(f"its format is {header.get('format', 'not given')}, and this version reads {FORMAT}")
        return _rebuild(header, arrays), json.loads(header["metadata"]), more
    except (ValueError, TypeError, KeyError) as error:
        raise ValueError(f"{path} is not a checkpoint of minitransformer: {error}") from error


def _rebuild(header, state):
    """A model of the configuration in the header, with the weights of `state`."""
    if not state:
        raise ValueError("it has no weights")
    config = TransformerConfig(**json.loads(header["config"]))
    kind = check_choice("model", header.get("model", "Transformer"), MODELS)
    options = json.loads(header.get("options", "{}"))
    model = MODELS[kind](config, **options, seed=None, dtype=next(iter(state.values())).dtype)
    model.load_state_dict(state)
    return model

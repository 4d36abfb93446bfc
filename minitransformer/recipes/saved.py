"""Finding and loading the model that RUN means, for all commands that use a trained model."""

import sys
from pathlib import Path
from typing import Any

import numpy as np

from minitransformer.interop import (
    is_huggingface_folder,
    load_huggingface,
    load_huggingface_tokenizer,
    load_text_model,
    outline_huggingface,
)
from minitransformer.models.since_2017.bert import BERT
from minitransformer.system.files import kind_of
from minitransformer.tokenizers import CharacterTokenizer, Tokenizer, tokenizer_from_dict
from minitransformer.training.saving.checkpoint import load_checkpoint
from minitransformer.training.saving.checkpointer import saved_steps

FILE = "model.safetensors"


def load_model(run: str, task: str) -> tuple[Any, dict[str, Any]]:
    """The model that `run` means, see `find_model`, and its metadata.

    The metadata of a checkpoint of an unfinished run say which `task` it is, as those of a finished model do, and the
    user is told. Raises ValueError, naming the weight, if one is NaN or infinite: such a model computes nothing.
    """
    path = find_model(run, task)
    model, metadata = load_checkpoint(path)
    for name, array in model.state_dict().items():
        bad = array[~np.isfinite(array)]
        if bad.size:
            count = f"{bad.size:,} of its {array.size:,} numbers"
            raise ValueError(f"{path} cannot be used: {name} is not finite ({count}, the first is {bad[0]})")
    about = metadata.get("about")
    if isinstance(about, dict):
        if kind_of(path.parent / FILE) != "file":
            print(f"note: this run is not finished; the model is that of {path.name}", file=sys.stderr)
        metadata = {**about, "task": about.get("recipe")}
    return model, metadata


def open_model(run: str, task: str) -> tuple[Any, Tokenizer | None]:
    """The model that `run` means, see `load_model`, or a decoder or BERT of Hugging Face in that folder; its tokenizer.

    The tokenizer is None if the model was saved without one.
    """
    if is_huggingface_folder(run):
        if isinstance(outline_huggingface(run), BERT):
            return load_huggingface(run), load_huggingface_tokenizer(run)
        loaded = load_text_model(run)
        return loaded.model, loaded.tokenizer
    model, metadata = load_model(run, task)
    return model, tokenizer_from_dict(metadata["tokenizer"]) if "tokenizer" in metadata else None


def check_known(tokenizer: Tokenizer, text: str, name: str) -> None:
    """ValueError if a `text`, which is called `name` there, has characters that the `tokenizer` of a model lacks."""
    if isinstance(tokenizer, CharacterTokenizer) and not tokenizer.unknown:
        lacking = [repr(character) for character in dict.fromkeys(text) if character not in tokenizer.characters]
        if lacking:
            names = ", ".join(lacking[:10]) + (f" and {len(lacking) - 10:,} more" if lacking[10:] else "")
            rest = "models with --tokenizer bytes or bpe know all"
            raise ValueError(f"{name} has characters that the training text did not have: {names}; {rest}")


def models_near(path: Path) -> list[str]:
    """The folders with a finished model that are beside `path`, or in runs/."""
    return sorted({str(model.parent) for place in (path.parent, Path("runs")) for model in place.glob(f"*/{FILE}")})


def find_model(run: str, task: str) -> Path:
    """The file of the model that is meant by `run`: a file, or the folder of a run or of its checkpoints.

    In a folder, that is the finished model, or else the newest checkpoint. Raises FileNotFoundError, which names other
    runs, or else `task` as one to train, if there is none.
    """
    path = Path(run)
    if kind_of(path) not in ("folder", ""):
        return path
    checkpoints = saved_steps(path / "checkpoints") or saved_steps(path)
    for place in (path / FILE, *checkpoints[-1:]):
        if kind_of(place) == "file":
            return place
    others = models_near(path)
    remedy = f"models here: {', '.join(others)}" if others else f"train one, as with `minitransformer train {task}`"
    raise FileNotFoundError(f"there is no model {run}; {remedy}")

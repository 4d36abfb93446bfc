"""Two trained models on one page, which compares them number by number."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from minitransformer.explorer.export import Data

SAME = ("task", "tokens", "source_end", "sizes", "norm_eps", "max_length", "source", "target")
FIELDS = {"C": "d_model", "H": "num_heads", "F": "d_ff", "V": "vocab_size", "layers": "num_layers"}


def pair_names(runs: Sequence[str]) -> tuple[str, str]:
    """How the page calls two runs: by the names of their folders if these differ, and otherwise by their paths.

    Raises ValueError if it is the same run twice.
    """
    paths = [Path(run) for run in runs]
    if paths[0].resolve() == paths[1].resolve():
        raise ValueError(f"two different runs are needed for a comparison, got {runs[0]} twice")
    names = [path.name for path in paths] if paths[0].name != paths[1].name else [str(path) for path in paths]
    # in JavaScript, a name that is a number would come before the others
    first, second = (f"run {name}" if name.isdigit() else name for name in names)
    return first, second


def pair_data(first: Data, second: Data, names: tuple[str, str]) -> Data:
    """MODEL of the page with the weights of two models, which read the same source, instead of the untrained ones.

    Raises ValueError unless they have the same task, tokens, sizes and kind.
    """
    for entry in SAME:
        check_same(entry, first[entry], second[entry], names)
    weights = [data["weights"]["trained"] for data in (first, second)]
    if len({array.dtype for arrays in weights for array in arrays.values()}) > 1:  # the page has one number format
        weights = [{name: array.astype(np.float64) for name, array in arrays.items()} for arrays in weights]
    return {**first, "weights": dict(zip(names, weights, strict=True)), "example": False}


def check_same(what: str, first: object, second: object, names: tuple[str, str]) -> None:
    """ValueError, which says where they differ, unless the two are equal."""
    if isinstance(first, dict) and isinstance(second, dict):
        for key in first:
            check_same(FIELDS.get(key) or str(key), first[key], second.get(key), names)
    elif first != second:
        short = isinstance(first, (int, float, str)) or first is None
        where = f": {first} in {names[0]}, {second} in {names[1]}" if short else ""
        raise ValueError(f"the two models must have the same {what}{where}")

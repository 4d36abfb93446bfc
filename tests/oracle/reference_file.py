"""The file of reference values: what PyTorch computed for the reference cases, with all that is needed to repeat it.

It stores the problems as well as the solutions, so that no test depends on a random generator staying the same. The
problems' floats are exact in float16 and take two bytes each.
"""

from pathlib import Path

import numpy as np
from safetensors import safe_open
from safetensors.numpy import save_file

from tests.oracle.problems import Numbers, Solution
from tests.oracle.training import Run, Start

PATH = Path(__file__).parents[1] / "reference" / "pytorch.safetensors"


def shorten(tree):
    """Nested dicts of arrays with all floats in float16; ValueError if one would change."""
    return _map(_shorten, tree)


def write(tree, made_with, path=PATH):
    """Store nested dicts of arrays, with a slash between the names of two levels, and the versions they come from.

    One line of metadata and no more: the order of several would change the file's bytes from run to run.
    """
    contiguous = _map(lambda array: np.array(array, order="C"), tree)
    save_file(dict(_flatten(contiguous)), path, metadata={"made_with": made_with})


def read(path=PATH):
    """The nested dicts of arrays, with floats as float64, and the versions that made them."""
    with safe_open(path, framework="numpy") as file:
        flat = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - not a dict
        made_with = file.metadata()["made_with"]
    return _map(_lengthen, _unflatten(flat)), made_with


def read_case(tree, name):
    """The Numbers and PyTorch's Solution of a case; a case without parameters or inputs has stored none."""
    stored = tree[name]
    numbers = {"weights": {}, "inputs": {}, "constants": {}, **stored["problem"]}
    return Numbers(**numbers), Solution(**stored["solution"])


def read_training(tree):
    """Where training started and what PyTorch made of it."""
    return Start(**tree["training"]["start"]), Run(**tree["training"]["run"])


def _shorten(array):
    if array.dtype != np.float64:
        return array
    short = array.astype(np.float16)
    if not np.array_equal(short.astype(np.float64), array):
        raise ValueError("a problem must have only floats that are exact in float16")
    return short


def _lengthen(array):
    return array.astype(np.float64) if array.dtype == np.float16 else array


def _map(function, tree):
    if isinstance(tree, dict):
        return {name: _map(function, branch) for name, branch in tree.items()}
    return function(np.asarray(tree))


def _flatten(tree, prefix=""):
    for name, branch in tree.items():
        if isinstance(branch, dict):
            yield from _flatten(branch, f"{prefix}{name}/")
        else:
            yield prefix + name, branch


def _unflatten(flat):
    tree = {}
    for path, array in flat.items():
        *branches, name = path.split("/")
        branch = tree
        for part in branches:
            branch = branch.setdefault(part, {})
        branch[name] = array
    return tree

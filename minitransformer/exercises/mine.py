"""The learner's own functions inside the real model, and the library's where an exercise is open."""

import contextlib
import sys
from typing import NamedTuple

import numpy as np

from minitransformer.exercises.catalogue import find_exercises
from minitransformer.exercises.runner import check
from minitransformer.training import CrossEntropyLoss, forward_backward


class Part(NamedTuple):
    """One function of an exercise, and what becomes of it in training."""

    exercise: object
    function: str
    finding: object  # of the checker, or None where the exercise has not been begun
    replacement: object
    mine: object  # the learner's function, or None where the library's is used


def collect_parts(workshop):
    """Check all that the learner has begun, and say which functions can be used -> [Part].

    Those that pass are used, and those that are wrong in their numbers, too: that is how one sees what a mistake does.
    Those that are open, fail, or return other shapes are not.
    """
    parts = []
    for exercise in find_exercises():
        if not exercise.replaces:
            continue
        begun = workshop.file(exercise).exists()
        findings = (
            {finding.function: finding for finding in check(exercise, workshop.file(exercise))[0]} if begun else {}
        )
        usable = {name for name, finding in findings.items() if can_be_used(finding)}
        module = workshop.load(exercise) if usable else None
        for name, replacement in exercise.replaces.items():
            mine = getattr(module, name) if name in usable else None
            parts.append(Part(exercise, name, findings.get(name), replacement, mine))
    return parts


def can_be_used(finding):
    """Whether a function runs and returns arrays of the right shapes, be they right or not."""
    return finding.status == "passed" or (bool(finding.outputs) and None not in finding.outputs.values())


@contextlib.contextmanager
def installed(parts):
    """Inside a `with` block the library calls the learner's functions."""
    undo = []
    try:
        for part in parts:
            if part.mine is None:
                continue
            replacement = part.replacement
            mine = replacement.adapt(part.mine)
            if replacement.owner is not None:
                undo.append((setattr, replacement.owner, replacement.original.__name__, replacement.original))
                setattr(replacement.owner, replacement.original.__name__, mine)
            else:
                undo += replace_everywhere(replacement.original, mine)
        yield
    finally:
        for put, place, key, value in reversed(undo):
            put(place, key, value)


def replace_everywhere(original, mine):
    """Let every module of the library that has imported `original` have `mine` -> how to undo it.

    Also in tables of functions, which are dictionaries of tuples.
    """
    undo = []
    modules = [module for name, module in list(sys.modules.items()) if name.partition(".")[0] == "minitransformer"]
    for module in modules:
        for name, value in list(vars(module).items()):
            if value is original:
                undo.append((setattr, module, name, value))
                setattr(module, name, mine)
            elif isinstance(value, dict) and not name.startswith("__"):
                for key, row in list(value.items()):
                    if isinstance(row, tuple) and any(item is original for item in row):
                        undo.append((dict.__setitem__, value, key, row))
                        value[key] = tuple(mine if item is original else item for item in row)
    return undo


def compare_gradients(make_model, batch, parts):
    """How the learner's functions change the first gradient of a model -> (cosine, ratio of lengths) to the right one.

    `make_model()` makes the same model each time. NaN where a gradient is not finite.
    """
    right = gradient_of(make_model(), batch)
    with installed(parts):
        mine = gradient_of(make_model(), batch)
    lengths = np.linalg.norm(right), np.linalg.norm(mine)
    if not np.isfinite(lengths[1]):
        return np.nan, np.nan
    return float(right @ mine / (lengths[0] * lengths[1] or 1.0)), float(lengths[1] / lengths[0])


def gradient_of(model, batch):
    """All gradients of the mean loss on a batch, as one vector."""
    with np.errstate(all="ignore"):
        forward_backward(model, CrossEntropyLoss(0.1), batch)
    return np.concatenate([parameter.grad.reshape(-1) for parameter in model.parameters()]).astype(np.float64)

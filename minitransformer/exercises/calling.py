"""Calling a learner's function: on copies of its inputs, twice, with everything it may do wrong put into words."""

import copy
import traceback
from typing import NamedTuple

import numpy as np


class Called(NamedTuple):
    """What came of a call: arrays, or a complaint."""

    outputs: tuple | None  # of float64 arrays, copies
    complaint: str | None


class StillOpenError(Exception):
    """The function is as it was handed out; the message is what the stub says."""


def call(function, args, task, path):
    """Call `function` on copies of `args`, twice -> Called. Raises StillOpenError for a stub."""
    first, complaint = _once(function, args, task, path)
    if complaint:
        return Called(first, complaint)
    second, complaint = _once(function, args, task, path)
    if complaint:
        return Called(None, f"the second call went wrong, the first did not: {complaint}")
    if not all(np.array_equal(a, b, equal_nan=True) for a, b in zip(first, second, strict=True)):
        return Called(None, "two calls with the same inputs give different results: does something outside change?")
    return Called(first, None)


def _once(function, args, task, path):
    """One call -> (outputs or None, complaint or None). What it was given is looked at afterwards."""
    given = copy.deepcopy(args)
    try:
        returned = function(*given)
    except NotImplementedError as stub:
        raise StillOpenError(str(stub)) from None
    except Exception as error:
        return None, crash(error, path)
    outputs, complaint = as_arrays(returned, task.outputs)
    if complaint is None and not unchanged(given, args):
        complaint = (
            "it changes what it was given; others still need that. Work on a copy, or write y = x * 2, not x *= 2"
        )
    return outputs, complaint


def crash(error, path):
    """One line on an exception: what it says, and the learner's own last line on the way to it."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)]
    where = f" in line {frames[-1].lineno}:  {frames[-1].line}" if frames else ""
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text}{where}" if text else f"{type(error).__name__}{where}"


def as_arrays(returned, outputs):
    """What a function returned, as float64 arrays -> (arrays or None, complaint or None).

    Lists and numbers are taken for the arrays that they look like. float32 is refused: it hides small mistakes.
    """
    names = ", ".join(output.name for output in outputs)
    if returned is None:
        return None, f"it returns nothing; a `return {names}` is missing"
    if len(outputs) == 1 and not (isinstance(returned, tuple) and len(returned) == 1):
        returned = (returned,)
    if not isinstance(returned, tuple | list) or len(returned) != len(outputs):
        count = len(returned) if isinstance(returned, tuple | list) else "one thing"
        return None, f"it returns {count}, and should return {len(outputs)}: {names}"
    arrays = []
    for value, output in zip(returned, outputs, strict=True):
        array, complaint = _as_array(value, output.name)
        if complaint:
            return None, complaint
        arrays.append(array)
    return tuple(arrays), None


def _as_array(value, name):
    try:
        array = np.asarray(value)
    except ValueError:
        array = np.asarray(None)
    if array.dtype in (np.float32, np.float16):
        return None, f"{name} is {array.dtype}, and what came in was float64: where is it rounded?"
    if array.dtype.kind == "c":
        return None, f"{name} has complex numbers, and what came in was real"
    if array.dtype.kind not in "fiub":
        return None, f"{name} should be an array of numbers, got {type(value).__name__}"
    return array.astype(np.float64), None


def unchanged(given, args):
    """Whether two nests of tuples, lists, dictionaries and arrays hold the same."""
    if isinstance(args, tuple | list):
        return len(given) == len(args) and all(unchanged(a, b) for a, b in zip(given, args, strict=True))
    if isinstance(args, dict):
        return given.keys() == args.keys() and all(unchanged(given[key], args[key]) for key in args)
    if isinstance(args, np.ndarray):
        return given.shape == args.shape and np.array_equal(given, args, equal_nan=True)
    return True

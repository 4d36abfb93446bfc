"""Calling a learner's function twice, on copies of its inputs, and describing in one line what goes wrong."""

import copy
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from minitransformer.exercises.exercise import Output, Task


class Called(NamedTuple):
    """The result of a call: arrays, or a complaint."""

    outputs: tuple[np.ndarray, ...] | None  # of float64 arrays, copies
    complaint: str | None


class StillOpenError(Exception):
    """The function is still the stub that was handed out; the message is the stub's."""


def call(function: Callable[..., Any], args: tuple, task: Task, path: Path) -> Called:
    """Call `function` twice on copies of `args` -> Called. Raises StillOpenError for a stub."""
    first, complaint = _once(function, args, task, path)
    if complaint or first is None:
        return Called(first, complaint)
    second, complaint = _once(function, args, task, path)
    if complaint or second is None:
        return Called(None, f"the first call worked but the second one failed: {complaint}")
    if not all(np.array_equal(a, b, equal_nan=True) for a, b in zip(first, second, strict=True)):
        return Called(
            None, "two calls with the same inputs give different results: does it depend on something outside?"
        )
    return Called(first, None)


def _once(function: Callable[..., Any], args: tuple, task: Task, path: Path) -> Called:
    """One call. Its inputs are compared with copies afterwards."""
    given = copy.deepcopy(args)
    try:
        returned = function(*given)
    except NotImplementedError as stub:
        raise StillOpenError(str(stub)) from None
    except Exception as error:
        return Called(None, crash(error, path))
    outputs, complaint = as_arrays(returned, task.outputs)
    if complaint is None and not unchanged(given, args):
        complaint = "it changes its inputs, which are still needed. Work on a copy, or write y = x * 2, not x *= 2"
    return Called(outputs, complaint)


def crash(error: Exception, path: Path) -> str:
    """One line about an exception: its message, and the last line of the learner's file in its traceback."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)]
    where = f" in line {frames[-1].lineno}:  {frames[-1].line}" if frames else ""
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text}{where}" if text else f"{type(error).__name__}{where}"


def as_arrays(returned: Any, outputs: Sequence[Output]) -> Called:
    """What a function returned, as float64 arrays.

    Lists and numbers are converted to arrays. float32 is refused: it hides small mistakes.
    """
    names = ", ".join(output.name for output in outputs)
    if returned is None:
        return Called(None, f"it returns nothing; a `return {names}` is missing")
    if len(outputs) == 1 and not (isinstance(returned, tuple) and len(returned) == 1):
        returned = (returned,)
    if not isinstance(returned, tuple | list) or len(returned) != len(outputs):
        count = len(returned) if isinstance(returned, tuple | list) else "one value"
        return Called(None, f"it returns {count} but should return {len(outputs)}: {names}")
    arrays = []
    for value, output in zip(returned, outputs, strict=True):
        array, complaint = _as_array(value, output.name)
        if complaint:
            return Called(None, complaint)
        arrays.append(array)
    return Called(tuple(arrays), None)


def _as_array(value: Any, name: str) -> tuple[Any, str | None]:
    try:
        array = np.asarray(value)
    except ValueError:
        array = np.asarray(None)
    if array.dtype in (np.float32, np.float16):
        return None, f"{name} is {array.dtype} but the inputs are float64: where is it rounded?"
    if array.dtype.kind == "c":
        return None, f"{name} is complex but the inputs are real"
    if array.dtype.kind not in "fiub":
        return None, f"{name} should be an array of numbers, got {type(value).__name__}"
    return array.astype(np.float64), None


def unchanged(given: Any, args: Any) -> bool:
    """Whether two nested structures of tuples, lists, dictionaries and arrays are equal."""
    if isinstance(args, tuple | list):
        return len(given) == len(args) and all(unchanged(a, b) for a, b in zip(given, args, strict=True))
    if isinstance(args, dict):
        return given.keys() == args.keys() and all(unchanged(given[key], args[key]) for key in args)
    if isinstance(args, np.ndarray):
        return given.shape == args.shape and np.array_equal(given, args, equal_nan=True)
    return True

"""Calling a learner's function twice, on copies of its inputs, and describing in one line what goes wrong."""

import copy
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from minitransformer.exercises.cases import has_floats
from minitransformer.exercises.exercise import Task
from minitransformer.gradcheck.judge.clues import Output, crash, message_of

NARROWER = {False: (np.float32, np.float16), True: (np.float16,)}  # by whether the inputs are float32


class Called(NamedTuple):
    """The result of a call: arrays, or a complaint."""

    outputs: tuple[np.ndarray, ...] | None = None  # of float64 arrays, copies
    complaint: str = ""
    faults: tuple[tuple[str, str], ...] = ()  # (name of an output, sentence): it is not of the right kind
    remarks: tuple[str, ...] = ()  # sentences about outputs that can be used, but could be better


class StillOpenError(Exception):
    """The function is still a stub. The message is that of the stub."""


def call(function: Callable[..., Any], args: tuple, task: Task, path: Path, single: bool = False) -> Called:
    """Call `function` twice on copies of `args` -> Called. Raises StillOpenError for a stub.

    `single` says that the inputs are float32.
    """
    first = _once(function, args, task, path, single)
    if first.outputs is None:
        return first
    second = _once(function, args, task, path, single)
    if second.outputs is None:
        return Called(complaint=f"the first call worked but the second one failed: {second.complaint}")
    if not all(np.array_equal(a, b, equal_nan=True) for a, b in zip(first.outputs, second.outputs, strict=True)):
        return Called(
            complaint="two calls with the same inputs give different results: is there a global or random number in it?"
        )
    return first


def _once(function: Callable[..., Any], args: tuple, task: Task, path: Path, single: bool) -> Called:
    """One call. Its inputs are compared with copies afterwards."""
    given = copy.deepcopy(args)
    try:
        returned = function(*given)
    except NotImplementedError as stub:
        raise StillOpenError(message_of(stub)) from None
    except (Exception, SystemExit) as error:
        return Called(complaint=crash(error, str(path).__eq__))
    called = as_arrays(returned, task.outputs, single and has_floats(args))
    if called.outputs is not None and not unchanged(given, args):
        return Called(
            complaint="it changes its inputs, which are still needed. Work on a copy: write y = x * 2 instead of x *= 2"
        )
    return called


def as_arrays(returned: Any, outputs: Sequence[Output], single: bool = False) -> Called:
    """What a function returned, as float64 arrays.

    Numbers and lists are converted to arrays. float32 hides small mistakes, so it is refused unless the inputs are
    float32.
    """
    names = ", ".join(output.name for output in outputs)
    if returned is None:
        return Called(complaint=f"it returns nothing; a `return {names}` is missing")
    if len(outputs) == 1 and not (isinstance(returned, tuple) and len(returned) == 1):
        returned = (returned,)
    if not isinstance(returned, tuple | list) or len(returned) != len(outputs):
        count = f"{len(returned)} values" if isinstance(returned, tuple | list) else f"one {type(returned).__name__}"
        return Called(complaint=f"it returns {count} but should return {len(outputs)}: {names}")
    arrays, faults, remarks, wider = [], [], [], []
    for value, output in zip(returned, outputs, strict=True):
        array, complaint = _as_array(value, output.name, single)
        if complaint:
            return Called(complaint=complaint)
        fault = kind_fault(value, array, output)
        if fault:
            faults.append((output.name, fault))
        elif isinstance(value, tuple | list) and output.axes and not output.sequence:
            remarks.append(f"{output.name} is a {type(value).__name__}, but an array is better")
        if single and output.kind == "float" and output.axes and array.dtype == np.float64:
            wider.append(output.name)
        arrays.append(array.astype(np.float64))
    if wider:
        remarks.append(
            f"with float32 inputs, {', '.join(wider)} should be float32, too: give np.zeros and np.eye the dtype of an "
            "input, and take math.sqrt of plain numbers"
        )
    return Called(tuple(arrays), faults=tuple(faults), remarks=tuple(remarks))


def _as_array(value: Any, name: str, single: bool) -> tuple[np.ndarray, str]:
    """One output as an array, or a complaint."""
    try:
        array = np.asarray(value)
    except Exception:  # ragged lists, and whatever an object's __array__ may raise
        array = np.asarray(None)
    if array.dtype in NARROWER[single]:
        inputs = "float32" if single else "float64"
        return array, f"{name} is {array.dtype} but the inputs are {inputs}: where is it rounded?"
    if array.dtype.kind == "c":
        return array, f"{name} is complex but the inputs are real"
    if array.dtype.kind not in "fiub":
        return array, f"{name} should be an array of numbers, got {type(value).__name__}"
    return array, ""


def kind_fault(value: Any, array: np.ndarray, output: Output) -> str:
    """A sentence if an output that should hold integers or booleans is something else, otherwise ""."""
    if output.kind == "float":
        return ""
    wanted = {"bool": "booleans, True and False", "int": "integers"}[output.kind]
    is_kind = array.dtype.kind in {"bool": "b", "int": "iu"}[output.kind] or not array.size
    if isinstance(value, tuple | list) and not output.sequence:
        return f"{output.name} is a {type(value).__name__}, but should be an array of {wanted}"
    if not is_kind:
        return f"{output.name} has the dtype {array.dtype}, but should hold {wanted}"
    return ""


def unchanged(given: Any, args: Any) -> bool:
    """Whether two nested structures of tuples, lists, dictionaries and arrays are equal."""
    if type(given) is not type(args):
        return False
    if isinstance(args, tuple | list):
        return len(given) == len(args) and all(unchanged(a, b) for a, b in zip(given, args, strict=True))
    if isinstance(args, dict):
        return given.keys() == args.keys() and all(unchanged(given[key], args[key]) for key in args)
    if isinstance(args, np.ndarray):
        return given.shape == args.shape and np.array_equal(given, args, equal_nan=True)
    return True

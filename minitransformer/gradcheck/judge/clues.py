"""Clues from a wrong array to the mistake that caused it, found without knowing the right formula.

The checker of the exercises and `check_layer` both use them.
"""

import itertools
import math
import traceback
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

LONGEST = 300  # characters of a message that an exception brings
ROUNDING = 1e-12  # results that are all smaller are 0, except for rounding
PRECISE = 1e-4  # a smaller relative error is one of precision


class Output(NamedTuple):
    """One value that a function returns: its name, and the names of its axes.

    `axes` is a string if all names are letters, such as "BTC", and otherwise a tuple, such as ("B", "S", "width"). A
    number has no axes: "". `kind` says what the entries are: "float", "int" (such as ids) or "bool" (such as a mask).
    Integers and booleans must come as an array of that kind, unless `sequence` allows a list or a tuple.
    """

    name: str
    axes: str | tuple[str, ...]
    kind: str = "float"
    sequence: bool = False


def scale_of(expected: np.ndarray) -> float:
    """What errors are measured by: the largest right entry, or 1 if all of them are 0."""
    largest = float(np.abs(expected).max(initial=0.0))
    return largest if largest > ROUNDING else 1.0


def error_of(got: np.ndarray, expected: np.ndarray) -> float:
    """The largest error, relative to the largest right entry."""
    with np.errstate(all="ignore"):
        return float(np.abs(got - expected).max(initial=0.0)) / scale_of(expected)


def wrong_entries(got: np.ndarray, expected: np.ndarray, tolerance: float) -> np.ndarray:
    """Where two arrays of one shape differ -> boolean array."""
    with np.errstate(all="ignore"):
        return ~(np.abs(got - expected) <= tolerance * scale_of(expected))  # NaN is wrong


def shape_clue(got: np.ndarray, expected: np.ndarray, output: Output) -> str:
    """A sentence about a wrong shape."""
    name, axes = output.name, output.axes
    letters = f" = ({', '.join(axes)}{',' * (len(axes) == 1)})" if axes else ""
    text = f"{name} has shape {got.shape} but should have {expected.shape}{letters}"
    if got.ndim > 1 and got.swapaxes(-1, -2).shape == expected.shape:
        return f"{text}: it is transposed"
    if expected.ndim < got.ndim and got.shape[got.ndim - expected.ndim :] == expected.shape:
        return f"{text}: something shared along the first axes sums its gradients over them"
    if got.ndim == expected.ndim and all(g in (1, e) for g, e in zip(got.shape, expected.shape, strict=True)):
        return f"{text}: an axis was summed that should have stayed"
    if got.size == expected.size:
        return f"{text}: the number of entries is right, so a reshape is missing or wrong"
    return text


def ratio_clue(got: np.ndarray, expected: np.ndarray, ratios: dict[str, float], sizes: dict[str, float]) -> str | None:
    """A sentence that names the factor, if `got` is the same multiple of `expected` everywhere; else None."""
    ratio = common_ratio(got, expected)
    if ratio is None:
        return None
    names = names_of_ratio(ratio, ratios, sizes)
    return ratio_sentence(ratio, names[:1]) if names or got.size > 1 else None


def common_ratio(got: np.ndarray, expected: np.ndarray) -> float | None:
    """got / expected if that is the same everywhere and not 0, else None."""
    seen = np.abs(expected) > 1e-6 * (np.abs(expected).max(initial=0.0) or 1.0)
    if not seen.any() or np.abs(got[~seen]).max(initial=0.0) > 1e-6 * np.abs(got).max(initial=0.0):
        return None
    quotients = got[seen] / expected[seen]
    ratio = float(np.median(quotients))
    return None if abs(ratio) < 1e-12 or np.abs(quotients - ratio).max() > 1e-6 * abs(ratio) else ratio


def ratio_sentence(ratio: float, names: list[str]) -> str:
    """The sentence about a ratio that has these names."""
    if abs(ratio + 1) < 1e-6:
        return f"yours / right = {ratio:.4g} everywhere: the sign is wrong"
    return f"yours / right = {ratio:.4g} everywhere{' = ' * bool(names)}{' or '.join(names)}"


def names_of_ratio(ratio: float, ratios: dict[str, float], sizes: dict[str, float]) -> list[str]:
    """The ratio as a multiple or fraction of named numbers, such as "1/sqrt(D)"."""
    known = [(name, value) for name, value in {**ratios, **sizes, "2": 2.0, "3": 3.0}.items() if value]
    known += [(f"sqrt({name})", math.sqrt(value)) for name, value in sizes.items()]
    known = [pair for name, value in known for pair in ((name, value), (_inverse(name), 1 / value))]
    for (a, left), (b, right) in itertools.permutations(sizes.items(), 2):
        known += [(f"{a}/{b}", left / right), (f"sqrt({a}/{b})", math.sqrt(left / right))]
    signed = [(sign + name, factor * value) for name, value in known for sign, factor in (("", 1.0), ("-", -1.0))]
    return [name for name, value in signed if abs(ratio - value) < 1e-6 * abs(ratio)]


def _inverse(name: str) -> str:
    return f"1/({name})" if " " in name else f"1/{name}"


def precision_clue(errors: dict[str, float]) -> str:
    """A sentence about outputs {name: relative error} that have only lost digits."""
    return (
        f"{', '.join(errors)}: off by {max(errors.values()):.0e} of the largest entry, where float64 alone is off by "
        "about 1e-16. Is there a float32 on the way (1e-7), a step that is too large, or a small number that was added?"
    )


def place_clue(wrong: np.ndarray, output: Output, places: dict[str, dict[str, Any]]) -> str | None:
    """A sentence about where the wrong entries are; None if they are everywhere."""
    name = output.name
    if wrong.all():
        return None
    for place, masks in places.items():
        mask = masks.get(name)
        if mask is not None and not mask.all() and not (wrong & ~np.broadcast_to(mask, wrong.shape)).any():
            return f"{name} is wrong only {place}"
    for axis, letter in enumerate(output.axes):
        others = tuple(i for i in range(wrong.ndim) if i != axis)
        indices = np.flatnonzero(wrong.any(axis=others))
        if len(indices) == 1 and wrong.shape[axis] > 1:
            return f"{name} is wrong only where the index of {letter} is {indices[0]}"
        right = np.setdiff1d(np.arange(wrong.shape[axis]), indices)
        if len(right) == 1:
            return f"{name} is right where the index of {letter} is {right[0]}, and wrong elsewhere"
        if len(right) and right[-1] < indices[0]:
            return f"{name} is wrong only where the index of {letter} is {indices[0]} or more"
    return f"{np.count_nonzero(wrong)} of the {wrong.size} entries of {name} are wrong"


def worst_clue(got: np.ndarray, expected: np.ndarray, output: Output) -> str:
    """A sentence about the entry with the largest error."""
    far = np.where(np.isnan(got), np.inf, np.abs(got - expected))
    index = np.unravel_index(np.argmax(far), far.shape)
    where = f"[{','.join(map(str, index))}]" if index else ""
    yours, right = _differing(float(got[index]), float(expected[index]))
    if output.kind != "float" and got[index] == round(got[index]):
        yours, right = (str({"int": int, "bool": bool}[output.kind](array[index])) for array in (got, expected))
    return f"worst {output.name}{where}: yours {yours}, right {right}"


def _differing(a: float, b: float) -> tuple[str, str]:
    """Two numbers with four decimals, or with as many digits as are needed to see that they differ."""
    if f"{a:.4f}" != f"{b:.4f}" and "0.0000" not in (f"{abs(a):.4f}" if a else "", f"{abs(b):.4f}" if b else ""):
        return f"{a:.4f}", f"{b:.4f}"
    digits = next((digits for digits in range(4, 17) if f"{a:.{digits}g}" != f"{b:.{digits}g}"), 17)
    return f"{a:.{digits}g}", f"{b:.{digits}g}"


def transpose_clue(got: np.ndarray, expected: np.ndarray, output: Output) -> str | None:
    """A sentence if a square array is the transpose of the right one, else None."""
    if got.ndim < 2 or got.shape[-1] != got.shape[-2] or got.shape[-1] == 1:
        return None
    turned = wrong_entries(got.swapaxes(-1, -2), expected, PRECISE).any()
    return None if turned else f"{output.name} is the transpose of the right one"


def linearity_clue(
    output: str, upstream: str, once: np.ndarray, zero: np.ndarray, twice: np.ndarray, minus: np.ndarray
) -> str | None:
    """A sentence if an output is not linear in the upstream gradient, as every backward is; else None.

    The arrays are the outputs for dy itself, for 0, 2 dy and -dy; `upstream` is what the function calls dy.
    """
    if np.array_equal(once, twice) and once.any():
        return f"{output} does not depend on {upstream}, the incoming gradient"
    if not np.isfinite(zero).all():
        return f"{output} is not finite when {upstream} is 0: what is it divided by?"
    if zero.any():
        return f"{output} is not 0 when {upstream} is 0: something is added that does not come from {upstream}"
    if once.shape == twice.shape and wrong_entries(twice, 2.0 * once, 1e-9).any():
        return f"{output} does not double when {upstream} doubles: {upstream} must come in once, as a factor"
    if once.shape == minus.shape and wrong_entries(minus, -once, 1e-9).any():
        return f"{output} does not change its sign when {upstream} does: which step looks at signs?"
    return None


def path_clue(name: str, got: np.ndarray, expected: np.ndarray, dy: Any, y: Any = None, x: Any = None) -> str | None:
    """A sentence about a path from an input x to the output y that its gradient forgets, if one can be named."""
    missing, dy = expected - got, np.asarray(dy)
    if not got.any() or not missing.any():
        return None
    if dy.shape == got.shape and not wrong_entries(missing, dy, PRECISE).any():
        return f"one path is missing: {name} also reaches the output directly (a residual), which adds dy"
    if dy.shape == got.shape and not wrong_entries(got, dy, PRECISE).any():
        return f"the gradient of {name} is dy: all paths except the direct one are missing"
    if common_ratio(got, expected) is not None or not got.ndim or got.shape[-1] == 1:
        return None
    rows = missing.reshape(-1, got.shape[-1])
    if np.ptp(rows, axis=-1).max() <= PRECISE * np.abs(missing).max():
        return f"one path is missing: what {name} lacks is the same in each row, as the gradient of a sum or a mean is"
    sources = {"the output": y}
    if x is not None and got.shape[-1] > 2:
        sources[f"{name} - mean({name})"] = x - x.mean(axis=-1, keepdims=True)
    for source, values in sources.items():
        if np.shape(values) == got.shape and _proportional(rows, np.reshape(values, rows.shape)):
            return (
                f"one path is missing: what {name} lacks is a multiple of {source} in each row, as the gradient of a "
                "norm, a variance or a softmax's sum is"
            )
    return None


def _proportional(a: np.ndarray, b: np.ndarray) -> bool:
    """Whether each row of `a` is a multiple of that of `b`."""
    lengths = np.linalg.norm(a, axis=-1) * np.linalg.norm(b, axis=-1)
    return bool((np.abs(np.abs((a * b).sum(axis=-1)) - lengths) <= PRECISE * lengths).all() and lengths.all())


def places_of_ids(ids: np.ndarray, V: int, name: str) -> dict[str, dict[str, np.ndarray]]:
    """Rows of the gradient `name` of a table (V, C), by how often their tokens occur in ids (B, T)."""
    count = np.bincount(ids.reshape(-1), minlength=V)[:, None]
    repeated = (np.stack([np.bincount(row, minlength=V) for row in ids]).max(axis=0) > 1)[:, None]
    return {
        "at tokens that occur twice in one sequence": {name: repeated},
        "at the tokens that occur more than once": {name: count > 1},
        "at the tokens that never occur": {name: count == 0},
        "at the tokens that occur": {name: count > 0},
    }


def crash(error: BaseException, is_own: Callable[[str], bool]) -> str:
    """One line about an exception: its message, and the last line of its traceback in a file that `is_own`."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if is_own(frame.filename)]
    where = f" in line {frames[-1].lineno}:  {frames[-1].line}" if frames else ""
    text = message_of(error)
    return f"{type(error).__name__}: {text}{where}" if text else f"{type(error).__name__}{where}"


def message_of(error: BaseException) -> str:
    """The message of an exception in one line; "" if it has none, or fails to give it."""
    try:
        text = " ".join(str(error).split())
    except Exception:
        return ""
    return text if len(text) <= LONGEST else f"{text[:LONGEST]} ..."

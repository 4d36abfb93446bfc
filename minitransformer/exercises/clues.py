"""Clues from a wrong array to the mistake that caused it, found without knowing the right formula."""

import itertools
import math
from typing import Any

import numpy as np

from minitransformer.exercises.exercise import Output

ROUNDING = 1e-12  # results that are all smaller are 0, except for rounding
PRECISE = 1e-4  # a smaller relative error is one of precision


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
    seen = np.abs(expected) > 1e-6 * (np.abs(expected).max(initial=0.0) or 1.0)
    if not seen.any() or np.abs(got[~seen]).max(initial=0.0) > 1e-6 * np.abs(got).max(initial=0.0):
        return None
    quotients = got[seen] / expected[seen]
    ratio = float(np.median(quotients))
    if abs(ratio) < 1e-12 or np.abs(quotients - ratio).max() > 1e-6 * abs(ratio):
        return None
    name = _named(ratio, ratios, sizes)
    return f"yours / right = {ratio:.4g} everywhere{name}" if name or got.size > 1 else None


def _named(ratio: float, ratios: dict[str, float], sizes: dict[str, float]) -> str:
    """The ratio as a multiple or fraction of a named number, such as " = 1/sqrt(D)"; "" if there is none."""
    if abs(ratio + 1) < 1e-6:
        return ": the sign is wrong"
    known = [(name, value) for name, value in {**ratios, **sizes, "2": 2.0, "3": 3.0}.items() if value]
    known += [(f"sqrt({name})", math.sqrt(value)) for name, value in sizes.items()]
    known = [pair for name, value in known for pair in ((name, value), (_inverse(name), 1 / value))]
    for (a, left), (b, right) in itertools.permutations(sizes.items(), 2):
        known += [(f"{a}/{b}", left / right), (f"sqrt({a}/{b})", math.sqrt(left / right))]
    for name, value in known:
        for sign, candidate in (("", value), ("-", -value)):
            if abs(ratio - candidate) < 1e-6 * abs(ratio):
                return f" = {sign}{name}"
    return ""


def _inverse(name: str) -> str:
    return f"1/({name})" if " " in name else f"1/{name}"


def precision_clue(errors: dict[str, float]) -> str:
    """A sentence about outputs {name: relative error} that have only lost digits."""
    digits = int(-math.log10(max(errors.values())))
    return (
        f"{', '.join(errors)}: only the first {digits} of about 15 digits are right. Is there a float32 on the way (it "
        "has 7 digits), a step that is too large, or a small number that was added?"
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
        right = wrong.shape[axis] - len(indices)
        if right == 1:
            only = np.setdiff1d(np.arange(wrong.shape[axis]), indices)[0]
            return f"{name} is right where the index of {letter} is {only}, and wrong elsewhere"
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

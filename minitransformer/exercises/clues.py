"""Clues from a wrong array to the mistake that caused it, found without knowing the right formula."""

from typing import Any

import numpy as np


def wrong_entries(got: np.ndarray, expected: np.ndarray, tolerance: float) -> np.ndarray:
    """Where two arrays of one shape differ -> boolean array."""
    scale = np.abs(expected).max(initial=0.0) or 1.0
    return ~(np.abs(got - expected) <= tolerance * scale)  # NaN is wrong


def shape_clue(got: np.ndarray, expected: np.ndarray, name: str) -> str:
    """A sentence about a wrong shape."""
    text = f"{name} has shape {got.shape} but should have {expected.shape}"
    if got.ndim > 1 and got.swapaxes(-1, -2).shape == expected.shape:
        return f"{text}: it is transposed"
    if expected.ndim < got.ndim and got.shape[got.ndim - expected.ndim :] == expected.shape:
        return f"{text}: what is shared along the first axes sums its gradients over them"
    if got.ndim == expected.ndim and all(g in (1, e) for g, e in zip(got.shape, expected.shape, strict=True)):
        return f"{text}: an axis was summed that should not be"
    if got.size == expected.size:
        return f"{text}: a reshape is missing, or there is one too many"
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
    return f"yours / right = {ratio:.4g} everywhere{_named(ratio, {**ratios, **sizes})}"


def _named(ratio: float, ratios: dict[str, float]) -> str:
    """The ratio as a multiple or fraction of a named number, such as " = 1/sqrt(d_k)"; "" if there is none."""
    if abs(ratio + 1) < 1e-6:
        return ": the sign"
    for name, value in {**ratios, "2": 2.0, "3": 3.0}.items():
        for text, candidate in ((name, value), (f"1/{name}", 1 / value if value else 0.0)):
            for sign, known in (("", candidate), ("-", -candidate)):
                if abs(ratio - known) < 1e-6 * abs(ratio):
                    return f" = {sign}{text}"
    return ""


def place_clue(wrong: np.ndarray, axes: str, places: dict[str, dict[str, Any]], name: str) -> str | None:
    """A sentence about where the wrong entries are; None if they are everywhere."""
    if wrong.all():
        return None
    for place, masks in places.items():
        mask = masks.get(name)
        if mask is not None and not mask.all() and not (wrong & ~np.broadcast_to(mask, wrong.shape)).any():
            return f"it is wrong only {place}"
    for axis, letter in enumerate(axes):
        others = tuple(i for i in range(wrong.ndim) if i != axis)
        indices = np.flatnonzero(wrong.any(axis=others))
        if len(indices) == 1 and wrong.shape[axis] > 1:
            return f"it is wrong only where the index of {letter} is {indices[0]}"
        right = wrong.shape[axis] - len(indices)
        if right == 1:
            only = np.setdiff1d(np.arange(wrong.shape[axis]), indices)[0]
            return f"it is right where the index of {letter} is {only}, and wrong elsewhere"
    return f"{np.count_nonzero(wrong)} of {wrong.size} entries are wrong"


def worst_clue(got: np.ndarray, expected: np.ndarray, name: str) -> str:
    """A sentence about the entry with the largest error."""
    far = np.where(np.isnan(got), np.inf, np.abs(got - expected))
    index = np.unravel_index(np.argmax(far), far.shape)
    where = f"[{','.join(map(str, index))}]" if index else ""
    return f"worst {name}{where}: yours {got[index]:.4f}, right {expected[index]:.4f}"

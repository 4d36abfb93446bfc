"""From a WRONG gradient to the mistake that made it, with the clues that the checker of the exercises gives.

The right gradient is found entry by entry, from the forward alone, for several sizes: a factor of 2 is not the batch if
it stays 2 for a batch of 1.
"""

import warnings
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from minitransformer.backend import to_host
from minitransformer.gradcheck.judge.clues import (
    PRECISE,
    Output,
    common_ratio,
    error_of,
    linearity_clue,
    names_of_ratio,
    path_clue,
    place_clue,
    places_of_ids,
    precision_clue,
    ratio_sentence,
    transpose_clue,
    wrong_entries,
)
from minitransformer.gradcheck.judge.loss import Loss
from minitransformer.gradcheck.judge.probes import Direction, Point, by_differences, entries_by_complex_step
from minitransformer.gradcheck.judge.report import COMPLEX_STEP, TensorCheck
from minitransformer.gradcheck.judge.use import Use

MOST = 1100  # entries of a tensor that is looked at closely
SURE = 1e-9  # relative errors above this are mistakes, not rounding


class Compared(NamedTuple):
    """A gradient, entry by entry, with the right one."""

    got: np.ndarray
    expected: np.ndarray


def explain(uses: Sequence[Use], backward: str, failures: Sequence[TensorCheck], seed: int) -> list[str]:
    """What the wrong gradients of the first use look like -> [sentence]. The other uses help to name a factor."""
    clues: list[str | None] = []
    loss, run = uses[0].loss(seed), getattr(uses[0], backward)
    once, *others = (loss.gradients(run, factor * loss.dy) for factor in (1.0, 0.0, 2.0, -1.0))
    for check in failures:
        key = check.name
        if key not in once or once[key].size > MOST or not np.isfinite(once[key]).all():
            continue
        found = compare(uses[0], loss, backward, check)
        axes = tuple(f"axis {i}" for i in range(found.got.ndim))
        output = Output(key, uses[0].letters(found.got) if key in uses[0].inputs else axes)
        wrong = wrong_entries(*found, SURE)
        of_dy = linearity_clue(key, "dy", once[key], *(other[key] for other in others))
        tail = _tail_clue(uses[0], key, wrong)
        if not wrong.any():  # it is right up to rounding, or wrong for another dy
            of_dy = of_dy or next(
                (
                    f"the gradient of {key} is wrong {which}: backward must be linear in dy"
                    for which, other in loss.others(run)
                    if wrong_entries(other[key], once[key], SURE).any()
                ),
                precision_clue({key: check.error}),
            )
            clues.append(of_dy)
        elif tail or error_of(*found) < PRECISE:
            clues.append(tail or precision_clue({key: error_of(*found)}))
        else:
            clues += _facts(uses, backward, check, found, output, seed)
            clues += [path_clue(key, *found, to_host(loss.dy), loss.first, uses[0].inputs.get(key)), of_dy]
    return list(dict.fromkeys(clue for clue in clues if clue))


def compare(use: Use, loss: Loss, backward: str, check: TensorCheck) -> Compared:
    """Every entry of one gradient, by the backward pass and by the method of the check."""
    point = Point(loss, (loss.gradients(getattr(use, backward)),))
    key, shape = check.name, loss.values[check.name].shape
    if check.method == COMPLEX_STEP:
        with warnings.catch_warnings(), np.errstate(all="ignore"):  # as when the gradient was judged
            warnings.simplefilter("ignore", np.exceptions.ComplexWarning)
            probes = entries_by_complex_step(point, key)
    else:
        size = int(np.prod(shape))
        probes = [by_differences(point, Direction((key,), 0, np.array([i])), abs(check.expected)) for i in range(size)]
    scale = max((abs(probe.expected) for probe in probes), default=1.0)
    # an entry that is right as far as one can know is right
    right = [p.got if abs(p.got - p.expected) <= p.error + SURE * scale else p.expected for p in probes]
    return Compared(np.array([p.got for p in probes]).reshape(shape), np.array(right).reshape(shape))


def _facts(
    uses: Sequence[Use], backward: str, check: TensorCheck, found: Compared, output: Output, seed: int
) -> list[str | None]:
    """Clues from the two arrays alone: nothing at all, a transpose, a factor, or a part of the entries."""
    if not found.got.any():
        return [f"the gradient of {check.name} is 0 everywhere"]
    turned = transpose_clue(*found, output)
    if turned:
        return [turned]
    ratio = common_ratio(*found)
    if ratio is not None and found.got.size > 1:
        return [f"{check.name}: {ratio_sentence(ratio, _names(uses, backward, check, ratio, found, seed))}"]
    wrong = wrong_entries(*found, SURE)
    return [place_clue(wrong, output, _places(uses[0], check.name, wrong, uses[0].loss(seed).first))]


def _names(
    uses: Sequence[Use], backward: str, check: TensorCheck, ratio: float, found: Compared, seed: int
) -> list[str]:
    """The names of a factor that hold for all sizes at which it is the factor."""
    names = names_of_ratio(ratio, *_sizes(uses[0], check.name, found))
    for use in uses[1:]:
        if check.name in use.inputs and use.inputs[check.name].size > MOST:
            continue
        other = compare(use, use.loss(seed), backward, check)
        again = common_ratio(*other)
        there = names_of_ratio(again, *_sizes(use, check.name, other)) if again is not None else []
        names = [name for name in names if name in there] if again is not None else names
    return names[:2]


def _sizes(use: Use, key: str, found: Compared) -> tuple[dict[str, float], dict[str, float]]:
    """Numbers that a factor may be: products of lengths, and the lengths."""
    first = use.first
    letters = use.letters(first) if use.inputs else ("B", "T")[: first.ndim]
    sizes = dict(zip(letters, map(float, first.shape), strict=False))
    products = {" ".join(letters[:count]): float(np.prod(first.shape[:count])) for count in range(2, len(letters) + 1)}
    if "T" in sizes and "C" in sizes:
        products["T C"] = sizes["T"] * sizes["C"]
    if key not in use.inputs:
        known = set(sizes.values())
        sizes |= {f"{key}.shape[{i}]": float(n) for i, n in enumerate(found.got.shape) if float(n) not in known}
    return products, sizes


def _places(use: Use, key: str, wrong: np.ndarray, y: np.ndarray) -> dict[str, dict[str, np.ndarray]]:
    """Entries that have something in common: positions that a mask leaves out, rows of ids, signs of the input."""
    places: dict[str, dict[str, np.ndarray]] = {}
    for name, array in zip(use.names, use.arrays, strict=True):
        if array.dtype == bool:
            mask = array.reshape([n for n in array.shape if n != 1] or [1])
            if mask.shape == wrong.shape[: mask.ndim] and mask.ndim:
                mask = mask.reshape(mask.shape + (1,) * (wrong.ndim - mask.ndim))
                places[f"where the mask ({name}) is False"] = {key: ~mask}
                places[f"where the mask ({name}) is True"] = {key: mask}
        elif _are_rows(array, wrong) and key not in use.inputs:
            table = places_of_ids(array.reshape(len(array), -1), len(wrong), key)
            extra = (1,) * (wrong.ndim - 2)
            places |= {place: {key: rows[key].reshape(-1, 1, *extra)} for place, rows in table.items()}
    if key in use.inputs:
        x = use.inputs[key]
        if y.shape == x.shape:
            places["where the output is 0"] = {key: y == 0}
        places |= {f"where {key} is negative": {key: x < 0}, f"where {key} is positive": {key: x > 0}}
    return places


def _are_rows(ids: np.ndarray, table: np.ndarray) -> bool:
    """Whether all numbers in `ids` are rows of a table."""
    if ids.dtype.kind not in "iu" or not ids.ndim or table.ndim < 2:
        return False
    return bool(ids.min(initial=0) >= 0 and ids.max(initial=0) < len(table))


def _tail_clue(use: Use, key: str, wrong: np.ndarray) -> str | None:
    """A sentence if an input's gradient is wrong exactly where the input is large."""
    if key not in use.inputs or wrong.all() or not wrong.any():
        return None
    x = use.inputs[key]
    for name, size in ((key, x), (f"-{key}", -x), (f"|{key}|", np.abs(x))):
        if size[wrong].min() > size[~wrong].max():
            return f"the gradient of {key} is wrong only where {name} is at least {size[wrong].min():.3g}"
    return None

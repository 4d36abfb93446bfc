"""Comparing all gradients of a forward and backward pair with derivatives of the forward alone.

Every input and every parameter is checked. A tensor's error is the largest difference between the two gradients,
relative to the tensor's own largest entry. A tensor whose gradient is 0 up to rounding (a key's bias) has no scale of
its own. So the scale is at least a thousandth of the largest gradient of the check.

There are three verdicts. OK means that the gradient agrees with the derivative up to the bound in the report, which is
1e-12 where the forward is analytic. WRONG means that they differ by more than the method's own error. Where neither is
certain, the verdict is "cannot tell". `examine` describes how the method is chosen.

What no such check can find: a mistake in a branch that the forward does not take for this input, a mistake below the
bound, and, in a tensor that is checked along random directions, one that is orthogonal to all of them. A function that
is smooth only on a scale far below the size of its input looks like its own average.

Everything is compared on the host; a forward and a backward run on the device in use.
"""

import warnings
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from minitransformer.backend import to_device, to_host
from minitransformer.core import Parameter
from minitransformer.gradcheck.judge.examine import Examiner, Tensor
from minitransformer.gradcheck.judge.loss import Loss
from minitransformer.gradcheck.judge.probes import Point
from minitransformer.gradcheck.judge.report import COMPLEX_STEP, WRONG, Report, TensorCheck, badness

TOLERANCE = 1e-12  # for the complex step
MAX_ENTRIES = 300  # a tensor with more is checked along random directions
DIRECTIONS = 3
NAMES = 4  # of tensors that are named together


def constants_to_device(items: Iterable[Any]) -> list:
    """The items, with masks and numbers on the device in use: a model takes ids on the host."""
    return [to_device(item) if hasattr(item, "dtype") and item.dtype.kind in "bf" else item for item in items]


def check_gradients(
    forward: Callable[..., tuple],
    backward: Callable[..., Any],
    inputs: Mapping[str, np.ndarray],
    parameters: Mapping[str, Parameter] | None = None,
    *,
    name: str = "function",
    seed: int = 0,
    method: str | None = None,
    together: bool = False,
    tolerance: float = TOLERANCE,
    max_entries: int = MAX_ENTRIES,
    directions: int = DIRECTIONS,
) -> Report:
    """Check `backward` against derivatives of `forward` -> Report.

    forward(*inputs) -> (y, cache); backward(dy, cache) -> a gradient for each input (a tuple if several, None if
    none), adding to each Parameter.grad. `inputs` {name: array on the host} and `parameters` {name: Parameter} are
    float64; forward and backward get arrays of the device in use.
    `method`: None chooses the complex step for the tensors in which the forward is analytic, and Richardson
    extrapolation for the others. "complex step" asks whether it is analytic only if a gradient is off. A tensor of up
    to `max_entries` is checked entry by entry, a larger one along `directions` random directions. With `together`, each
    direction runs through all tensors at once, for models of any size.

    Raises TypeError for other dtypes, ValueError if backward returns the wrong number or shapes of gradients.
    """
    loss = Loss(forward, inputs, parameters or {}, float64_values(inputs, parameters or {}), seed)
    here = Point(loss, (loss.gradients(backward),))
    tensors = _tensors(loss, together, max_entries, tolerance)
    if not tensors:
        return _cannot_tell(name, tensors, "there is no number to check")
    if not np.isfinite(loss.first).all():
        return _cannot_tell(name, tensors, "the output is not finite")
    if loss.first.dtype in (np.float16, np.float32):
        return _cannot_tell(name, tensors, f"the output is {loss.first.dtype}, too coarse for differences")
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore", np.exceptions.ComplexWarning)
        examiner = Examiner(here, backward, directions)
        checks = _trusted(examiner, tensors) if method == COMPLEX_STEP else examiner.examine(tensors, method)
        if checks is None:
            tensors = _tensors(loss, together, max_entries, tolerance)
            checks = examiner.examine(tensors, None)
        if method != COMPLEX_STEP and not loss.repeats():
            return _cannot_tell(name, tensors, "two forward passes of the same input gave different outputs")
    return Report(name, tuple(checks), _reason(tensors))


def float64_values(inputs: Mapping[str, np.ndarray], parameters: Mapping[str, Parameter]) -> dict[str, np.ndarray]:
    """{name: array on the host} of all inputs and parameters."""
    values = {**inputs, **{key: to_host(parameter.data) for key, parameter in parameters.items()}}
    for key, value in values.items():
        if value.dtype != np.float64:
            raise TypeError(f"gradient checks need float64 throughout, but {key} is {value.dtype}")
    return values


def _tensors(loss: Loss, together: bool, max_entries: int, tolerance: float) -> list[Tensor]:
    """What gets a line in the report."""
    sizes = {key: value.size for key, value in loss.values.items()}
    if together:
        whole = (sum(sizes.values()),)
        return [Tensor(f"all {len(sizes)} tensors", tuple(sizes), whole, entrywise=False, least=tolerance)]
    return [
        Tensor(key, (key,), value.shape, entrywise=value.size <= max_entries, least=tolerance)
        for key, value in loss.values.items()
        if value.size
    ]


def _trusted(examiner: Examiner, tensors: list[Tensor]) -> list[TensorCheck] | None:
    """The checks by the complex step, or None if the forward turns out not to be analytic."""
    try:
        checks = examiner.trust(tensors)
    except Exception:  # whatever the forward raises, it does not take complex numbers
        return None
    worst = max(zip(checks, tensors, strict=True), key=lambda pair: badness(pair[0]))[1]
    if worst.summary().verdict != WRONG:
        return checks
    again = Tensor(worst.title, worst.keys, worst.shape, worst.entrywise, least=worst.least)
    return checks if examiner.examine([again], None)[0].verdict == WRONG else None


def _cannot_tell(name: str, tensors: list[Tensor], reason: str) -> Report:
    """A report without any derivative."""
    for tensor in tensors:
        tensor.kept, tensor.unclear = [], tensor.count
    return Report(name, tuple(tensor.summary() for tensor in tensors), reason)


def _reason(tensors: list[Tensor]) -> str:
    """Why the methods were chosen, with the tensors' names if the reasons differ."""
    names: dict[str, list[str]] = {}
    for tensor in tensors:
        names.setdefault(tensor.reason, []).append(tensor.title)
    if len(names) == 1:
        return next(iter(names))
    return "; ".join(
        f"{reason} in {', '.join(titles[:NAMES])}{f' and {len(titles) - NAMES} more' * (len(titles) > NAMES)}"
        for reason, titles in names.items()
    )

"""One derivative of L, along one entry or along a random direction, by both methods and by the backward pass."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from minitransformer.gradcheck.check import H, complex_step
from minitransformer.gradcheck.judge import derivatives
from minitransformer.gradcheck.judge.loss import Loss, size_of, spread_of

ENOUGH = 1e-10  # differences stop when their error is this part of the derivative, up to SLACK
FIRST_STEP = 0.1  # relative to the size of what is moved
POOR = 1e-7  # after such an error longer steps are tried as well, because the function may be flat
DIRECTIONS = 103  # stream of random numbers


class Direction(NamedTuple):
    """A random direction in the tensors `keys`, or on some of their entries only. A single entry is moved by 1."""

    keys: tuple[str, ...]
    number: int = 0  # different numbers are different random directions
    places: np.ndarray | None = None  # indices into the entries of all `keys`, one tensor after the other; None is all

    def vector(self, loss: Loss) -> dict[str, np.ndarray]:
        """{name: array} of what is moved by how much, with standard normal numbers."""
        shapes = {key: loss.values[key].shape for key in self.keys}
        if self.places is None:
            rng = loss.generator(DIRECTIONS, self.number)
            return {key: rng.standard_normal(shape) for key, shape in shapes.items()}
        flat = np.zeros(sum(math.prod(shape) for shape in shapes.values()))
        single = len(self.places) == 1
        flat[self.places] = 1.0 if single else loss.generator(DIRECTIONS, self.number).standard_normal(len(self.places))
        vectors, start = {}, 0
        for key, shape in shapes.items():
            vectors[key] = flat[start : start + math.prod(shape)].reshape(shape)
            start += math.prod(shape)
        return vectors

    def halves(self, count: int) -> list["Direction"]:
        """Two directions, each on half of the entries; none for a single entry. `count` is the number of all."""
        places = np.arange(count) if self.places is None else self.places
        return [self._replace(places=part) for part in np.array_split(places, 2)] if len(places) > 1 else []


class Probe(NamedTuple):
    """A derivative by the backward pass and by a method that knows only the forward."""

    direction: Direction
    got: float  # for the upstream gradient for which it is furthest off
    expected: float
    error: float  # how far `expected` may be from the derivative; 0 for the complex step
    plain: float = math.nan  # by the backward pass for dy itself


class Point(NamedTuple):
    """L at one point, with the gradients there by the backward pass under test, for one or several upstream gradients.

    A right backward pass is linear in dy: for dy times a factor it returns the same gradient times that factor.
    """

    loss: Loss
    gradients: tuple[Mapping[str, np.ndarray], ...]

    def probe(self, direction: Direction, v: Mapping[str, np.ndarray], expected: float, error: float) -> "Probe":
        """The derivative along v against the slope of the gradient that is furthest from it."""
        slopes = [_slope(gradients, v) for gradients in self.gradients]
        return Probe(direction, _furthest(slopes, expected), expected, error, slopes[0])

    def nearby(self, backward: Callable[..., Any], number: int) -> "Point | None":
        """Another point, or None if the forward or the backward is not defined there."""
        loss = self.loss.nearby(number)
        try:
            return Point(loss, (loss.gradients(backward),))
        except (ValueError, ArithmeticError):
            return None


def complex_slope(loss: Loss, v: Mapping[str, np.ndarray]) -> float | None:
    """The derivative along v by the complex step, or None if L stays real."""
    value = loss(loss.along(v, 1j * H))
    return float(value.imag / H) if np.iscomplexobj(value) else None


def by_complex_step(point: Point, direction: Direction) -> Probe:
    """A probe by the complex step, exact to rounding where the forward is analytic."""
    v = direction.vector(point.loss)
    return point.probe(direction, v, complex_slope(point.loss, v) or 0.0, 0.0)


def entries_by_complex_step(point: Point, key: str) -> list[Probe]:
    """Probes of all entries of one tensor."""
    expected = complex_step(lambda x: point.loss({key: x}), point.loss.values[key]).ravel().tolist()
    slopes = zip(*(gradients[key].ravel().tolist() for gradients in point.gradients), strict=True)
    return [
        Probe(Direction((key,), 0, np.array([i])), _furthest(found, e), e, 0.0, found[0])
        for i, (found, e) in enumerate(zip(slopes, expected, strict=True))
    ]


def by_differences(
    point: Point, direction: Direction, scale: float = 0.0, enough: float = ENOUGH, first_step: float = FIRST_STEP
) -> Probe:
    """A probe by real differences, which stop when the error is `enough` times the derivative or `scale`."""
    v = direction.vector(point.loss)

    def differences(step: float, more_rows: int = 0) -> tuple[float, float]:
        rows = derivatives.ROWS + more_rows
        return derivatives.richardson(
            lambda t: point.loss.terms(point.loss.along(v, t)), 0.0, 1.0, step, enough, scale, rows
        )

    moved = {key: point.loss.values[key] for key in v if v[key].any()}
    step = first_step * min((_reach(value, v[key]) for key, value in moved.items()), default=1.0)
    expected, error = differences(step)
    longest = first_step * max([1.0, *map(size_of, moved.values())])
    if derivatives.SLACK * error > POOR * scale > 0 and longest > step:
        expected, error = differences(longest, math.ceil(math.log2(longest / step)))
    return point.probe(direction, v, expected, derivatives.SLACK * error)


def _slope(gradients: Mapping[str, np.ndarray], v: Mapping[str, np.ndarray]) -> float:
    """<gradient, v> by the backward pass; a NaN counts only where v is not 0."""
    slope = float(sum(np.vdot(gradients[key], v[key]) for key in v))
    if math.isnan(slope):
        slope = float(sum(np.vdot(np.where(v[key] == 0.0, 0.0, gradients[key]), v[key]) for key in v))
    return slope


def _furthest(slopes: Sequence[float], expected: float) -> float:
    """The one that is furthest from what is expected; NaN is."""
    if len(slopes) == 1:
        return slopes[0]
    return max(slopes, key=lambda slope: math.inf if math.isnan(slope) else abs(slope - expected))


def largest(probes: Sequence[Probe]) -> float:
    """The largest derivative among those that are known at all."""
    known = [abs(probe.expected) for probe in probes if probe.error <= 0.01 * abs(probe.expected)]
    return max(known, default=0.0)


def _reach(value: np.ndarray, v: np.ndarray) -> float:
    """How far one can move it. A single entry near 0 is smaller than its tensor, and may be near a kink at 0."""
    spread = spread_of(value)
    moved = np.flatnonzero(v)
    return float(np.clip(abs(value.flat[moved[0]]), 0.01 * spread, spread)) if len(moved) == 1 else spread

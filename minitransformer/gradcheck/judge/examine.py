"""Which method can be trusted for which tensor, and what it says of each gradient.

The complex step is exact, but only where the forward computes an analytic function of complex numbers: `np.abs` of a
complex number is not. So for each tensor it is first compared with real differences along random directions. These know
their own error. A part of the gradient that the complex step does not see would have to be orthogonal to all of these
directions, up to that error.

* Where the two agree, the complex step checks every entry, with a tight tolerance. An entry that fails is tried again
  with differences, because it may be at a kink.
* Where they disagree, or the forward refuses complex numbers, differences check every entry, each with its own error.
* Where differences do not converge, because there is a kink within their smallest step, the entry is checked at a point
  nearby, against the gradient of that point.
* What is left is for no method to tell, and the report says so.
"""

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from minitransformer.gradcheck.judge.loss import size_of
from minitransformer.gradcheck.judge.probes import (
    FIRST_STEP,
    Direction,
    Point,
    Probe,
    by_complex_step,
    by_differences,
    complex_slope,
    entries_by_complex_step,
    largest,
)
from minitransformer.gradcheck.judge.report import COMPLEX_STEP, OK, RICHARDSON, WRONG, TensorCheck
from minitransformer.gradcheck.judge.tensors import Tensor

LOOKS = 3  # random directions along which the two methods are compared
CLOSE = 1e-9  # differences stop when they are this good to compare with
POINTS = 4  # other points that are tried
HOPELESS = 16  # after so many directions that no point could settle, those that are left are not tried
FEWER = 8  # without a decision, the methods are compared on an eighth of the entries, and so on
OTHER_STEP = 0.7 * FIRST_STEP  # of the differences that confirm others
SUBSETS = 105  # stream of random numbers

FLOOR = 1e-3  # a tensor's scale is at least this part of the largest scale,
QUIET = 1e-5  # and this part of the gradient that moves L by as much as its own terms,
TINY = 1e-20  # and this part of dy
ROUNDING = 4 * np.finfo(np.float64).eps  # of L, relative to its terms, and of dy
MAX_NOISE = 1e-9  # up to this part of the largest gradient, what is not linear in dy is rounding

ANALYTIC = "the forward is analytic"
NOT_ANALYTIC = "the forward is not analytic: the complex step and differences disagree"
DROPS = "the forward drops the imaginary part"
REFUSES = "the forward does not take complex numbers"
UNKNOWN = "differences do not converge, so they cannot confirm the complex step"


class Examiner:
    """Checks tensors at the point `here`."""

    def __init__(self, here: Point, backward: Callable[..., Any], directions: int) -> None:
        self.here, self.backward, self.directions = here, backward, directions
        self._points: list[Point | None] = []

    def trust(self, tensors: list[Tensor]) -> list[TensorCheck]:
        """Check all tensors by the complex step, and take it to be right."""
        for tensor in tensors:
            tensor.kept = self._compare(tensor)
            tensor.probed = len(tensor.kept)
        floor = FLOOR * max(tensor.scale for tensor in tensors)
        for tensor in tensors:
            tensor.scale = max(tensor.scale, floor) or 1.0
        return [tensor.summary() for tensor in tensors]

    def examine(self, tensors: list[Tensor], method: str | None) -> list[TensorCheck]:
        """Check all tensors by the best method for each, or by differences if they are asked for."""
        self._measure_rounding(tensors)
        if method is None:
            self._choose(tensors)
        probes = []
        for tensor in tensors:
            tensor.method = method or tensor.method
            probes.append(self._compare(tensor))
        self._raise_scales(tensors)
        for tensor, found in zip(tensors, probes, strict=True):
            self._settle(tensor, found)
        return [tensor.summary() for tensor in tensors]

    def _choose(self, tensors: list[Tensor]) -> None:
        """Set the method of each tensor, and the reason."""
        looks = [
            [by_differences(self.here, tensor.along(number), enough=CLOSE) for number in range(LOOKS)]
            for tensor in tensors
        ]
        for tensor, probes in zip(tensors, looks, strict=True):
            tensor.scale = largest(probes)
        self._raise_scales(tensors)
        for tensor, probes in zip(tensors, looks, strict=True):
            tensor.method, tensor.reason = self._method_for(tensor, probes)

    def _method_for(self, tensor: Tensor, first: list[Probe]) -> tuple[str, str]:
        """The complex step if it agrees with differences along random directions -> (method, reason)."""
        for point, probes in self._looks(tensor, first):
            try:
                exact = [complex_slope(point.loss, probe.direction.vector(point.loss)) for probe in probes]
            except Exception as error:  # whatever the forward raises, it does not take complex numbers
                return RICHARDSON, f"{REFUSES}: {' '.join(str(error).split())[:100]}"
            known = [
                (derivative, probe) for derivative, probe in zip(exact, probes, strict=True) if tensor.resolved(probe)
            ]
            for derivative, probe in known:
                if derivative is None:
                    return RICHARDSON, DROPS
                if not tensor.agrees(derivative, probe):
                    return RICHARDSON, NOT_ANALYTIC
            if len(known) > LOOKS // 2:
                return COMPLEX_STEP, ANALYTIC
        return RICHARDSON, UNKNOWN

    def _looks(self, tensor: Tensor, first: list[Probe]) -> Iterator[tuple[Point, list[Probe]]]:
        """`first`, and then differences that meet fewer kinks: at a point nearby, and along fewer and fewer entries."""
        yield self.here, first
        for point in self.nearby():
            yield point, [by_differences(point, tensor.along(number), tensor.scale) for number in range(LOOKS)]
            break
        rng, count = self.here.loss.generator(SUBSETS), tensor.count
        while count > 1:
            count = max(1, count // FEWER)
            parts = [tensor.along(number, rng.permutation(tensor.count)[:count]) for number in range(LOOKS)]
            yield self.here, [by_differences(self.here, part, tensor.scale) for part in parts]

    def nearby(self) -> Iterator[Point]:
        """The points nearby at which the forward is defined."""
        for number in range(POINTS):
            if number == len(self._points):
                self._points.append(self.here.nearby(self.backward, number))
            point = self._points[number]
            if point is not None:
                yield point

    def _compare(self, tensor: Tensor) -> list[Probe]:
        """The derivatives of one tensor; they set its scale."""
        probes: list[Probe] = []
        directions = [tensor.along(number) for number in range(self.directions)]
        if tensor.method == COMPLEX_STEP and tensor.entrywise:
            probes = entries_by_complex_step(self.here, tensor.title)
        elif tensor.method == COMPLEX_STEP:
            probes = [by_complex_step(self.here, direction) for direction in directions]
        else:
            entries = [tensor.along(0, np.array([i])) for i in range(tensor.count if tensor.entrywise else 0)]
            for direction in entries or directions:
                probes.append(by_differences(self.here, direction, largest(probes)))
        tensor.scale = largest(probes)
        if not tensor.entrywise:
            # <gradient, v> is a random number whose standard deviation is the gradient's norm
            norm = math.sqrt(sum(float(np.vdot(g, g)) for g in (self.here.gradients[0][key] for key in tensor.keys)))
            tensor.scale = max(tensor.scale, norm if math.isfinite(norm) else 0.0)
        return probes

    def _raise_scales(self, tensors: list[Tensor]) -> None:
        """Give tensors with a gradient of almost 0 the scale of what almost means."""
        floor = max(FLOOR * max(tensor.scale for tensor in tensors), TINY * self.here.loss.largest_dy)
        for tensor in tensors:
            tensor.scale = max(tensor.scale, floor, QUIET * self._loudness(tensor)) or 1.0

    def _loudness(self, tensor: Tensor) -> float:
        """The gradient that moves L by as much as its own terms if the tensor is moved by its own size."""
        loss = self.here.loss
        return loss.loudness / min(size_of(loss.values[key]) for key in tensor.keys)

    def _measure_rounding(self, tensors: list[Tensor]) -> None:
        """Set what rounding can do to the gradients. L is known to `ROUNDING`; the backward pass is measured."""
        loss, (gradients, *_) = self.here
        others = [other for _, other in loss.others(self.backward)]
        self.here = Point(loss, (gradients, *others))
        most = MAX_NOISE * max(float(np.abs(gradient).max(initial=0.0)) for gradient in gradients.values())
        for tensor in tensors:
            noise = [
                float(np.abs(other[key] - gradients[key]).max(initial=0.0)) for other in others for key in tensor.keys
            ]
            of_entries = 1.0 if tensor.entrywise else math.sqrt(tensor.count)
            backward = min(10.0 * of_entries * max(noise), most)
            tensor.rounding = max(ROUNDING * self._loudness(tensor), backward if math.isfinite(backward) else 0.0)

    def _settle(self, tensor: Tensor, probes: list[Probe]) -> None:
        """Find the verdict on one tensor. After the first probe that is WRONG there is no need to go on."""
        queue = tensor.worst_first(probes)
        while queue and not (tensor.kept and tensor.verdict(tensor.kept[-1]) == WRONG):
            probe = queue.popleft()
            if tensor.verdict(probe) == OK:
                tensor.kept.append(probe)
            elif math.isnan(probe.got):  # wrong whatever the derivative is
                tensor.kept.append(probe._replace(error=0.0))
            elif tensor.method == RICHARDSON:
                queue.extend(self._by_differences(tensor, probe))
            elif not self._by_complex_step(tensor, probe):
                scale = tensor.scale
                tensor.restart(RICHARDSON, NOT_ANALYTIC)
                probes = self._compare(tensor)
                tensor.scale = max(tensor.scale, scale)
                queue = tensor.worst_first(probes)

    def _by_complex_step(self, tensor: Tensor, probe: Probe) -> bool:
        """Settle a probe that failed, with differences as the witness -> whether the forward is analytic after all."""
        again = by_differences(self.here, probe.direction, tensor.scale, enough=0.0)
        if not tensor.resolved(again):  # it is at a kink
            self._elsewhere(tensor, probe.direction)
        elif not tensor.agrees(probe.expected, again):
            return False
        elif tensor.verdict(again) == WRONG:
            tensor.kept.append(probe)
        elif abs(probe.got - probe.expected) <= ROUNDING * self.here.loss.largest_dy:  # as in 1 - tanh(x)^2 for large x
            tensor.kept.append(again)
        else:  # the failure is smaller than what differences can confirm
            tensor.unclear += tensor.entries(probe.direction)
        return True

    def _by_differences(self, tensor: Tensor, probe: Probe) -> list[Probe]:
        """Settle a probe that is not OK -> those that take its place, on half of its entries each."""
        if tensor.verdict(probe) == WRONG and self._confirmed(tensor, self.here, probe):
            tensor.kept.append(probe)
            return []
        halves = probe.direction.halves(tensor.count) if tensor.hopeless < HOPELESS else []
        if self._elsewhere(tensor, probe.direction, final=not halves):
            return []
        tensor.probed += len(halves)
        return [by_differences(self.here, half, tensor.scale) for half in halves]

    def _elsewhere(self, tensor: Tensor, direction: Direction, final: bool = True) -> bool:
        """Settle a direction at the first point nearby where differences can tell -> whether there is one."""
        for point in self.nearby() if tensor.hopeless < HOPELESS else ():
            probe = by_differences(point, direction, tensor.scale)
            tensor.scale = max(tensor.scale, largest([probe]))  # where there is a kink in each entry, this is the first
            verdict = tensor.verdict(probe)
            if verdict == OK or (verdict == WRONG and self._confirmed(tensor, point, probe)):
                tensor.kept.append(probe)
                tensor.nearby += tensor.entries(direction)
                return True
        tensor.hopeless += 1
        tensor.unclear += tensor.entries(direction) if final else 0
        return False

    def _confirmed(self, tensor: Tensor, point: Point, probe: Probe) -> bool:
        """Whether differences with other steps also say that the gradient is wrong."""
        again = by_differences(point, probe.direction, tensor.scale, 0.0, OTHER_STEP)
        return tensor.verdict(again) == WRONG

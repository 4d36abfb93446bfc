"""What gets one line in the report: a tensor, or several together, with what is known about the gradient."""

import dataclasses
import math
from collections import deque

import numpy as np

from minitransformer.gradcheck.judge.probes import Direction, Probe
from minitransformer.gradcheck.judge.report import CANNOT_TELL, COMPLEX_STEP, OK, WRONG, TensorCheck

RESOLUTION = 1e-6  # differences must be this good, relative to the gradient, to say something about it


@dataclasses.dataclass
class Tensor:
    """One gradient, or several that are checked together, and the probes so far."""

    title: str
    keys: tuple[str, ...]
    shape: tuple
    entrywise: bool
    method: str = COMPLEX_STEP
    reason: str = "as asked"
    least: float = 0.0  # relative tolerance of an exact derivative
    rounding: float = 0.0  # how far the gradient may be off by rounding alone
    scale: float = 1.0  # the size to which errors are relative
    kept: list[Probe] = dataclasses.field(default_factory=list)  # those with a verdict
    nearby: int = 0  # entries that were checked at a point nearby
    unclear: int = 0  # entries without a verdict
    probed: int = 0  # directions that were tried
    hopeless: int = 0  # directions that could not be settled at any point

    @property
    def count(self) -> int:
        """The number of entries."""
        return math.prod(self.shape)

    @property
    def tolerance(self) -> float:
        """The relative tolerance, to which the error of differences is added."""
        return max(self.least, self.rounding / self.scale)

    def along(self, number: int, places: np.ndarray | None = None) -> Direction:
        """Random direction `number`, on some of the entries or on all."""
        return Direction(self.keys, number, places)

    def resolved(self, probe: Probe) -> bool:
        """Whether the derivative is known well enough to judge a gradient by it."""
        return math.isfinite(probe.error) and probe.error <= RESOLUTION * self.scale

    def agrees(self, derivative: float, probe: Probe) -> bool:
        """Whether a derivative from elsewhere is what the probe expects, up to the probe's own error."""
        return abs(derivative - probe.expected) <= probe.error + self.tolerance * self.scale

    def verdict(self, probe: Probe) -> str:
        """OK or WRONG if the derivative is known well enough, else CANNOT_TELL."""
        if not self.resolved(probe):
            return CANNOT_TELL
        return OK if self.agrees(probe.got, probe) else WRONG

    def worst_first(self, probes: list[Probe]) -> deque[Probe]:
        """The probes in the order in which they are to be settled."""
        self.probed += len(probes)
        return deque(sorted(probes, key=self.excess, reverse=True))

    def restart(self, method: str, reason: str) -> None:
        """Begin again with another method."""
        self.method, self.reason, self.kept, self.nearby, self.unclear = method, reason, [], 0, 0
        self.probed = self.hopeless = 0

    def entries(self, direction: Direction) -> int:
        """How many entries are moved."""
        return self.count if direction.places is None else len(direction.places)

    def excess(self, probe: Probe) -> float:
        """The difference in units of what is allowed; NaN counts as infinite."""
        allowed = probe.error + self.tolerance * self.scale
        excess = abs(probe.got - probe.expected) / (allowed or 1.0)
        return math.inf if math.isnan(excess) else excess

    def summary(self) -> TensorCheck:
        """The worst of the kept probes, as a TensorCheck: the one whose error is largest relative to its tolerance."""
        nothing = Probe(self.along(0), math.nan, math.nan, math.inf)
        worst = max(self.kept, key=self.excess, default=nothing)
        plain = worst._replace(got=worst.plain)
        worst = plain if self.excess(plain) > 1.0 else worst  # else it is wrong for another dy only
        index: tuple = (worst.direction.number,)
        if self.entrywise and worst.direction.places is not None:
            index = tuple(int(i) for i in np.unravel_index(worst.direction.places[0], self.shape))
        return TensorCheck(
            name=self.title,
            shape=self.shape,
            method=self.method,
            directions=0 if self.entrywise else self.probed,
            error=abs(worst.got - worst.expected) / self.scale,
            tolerance=self.allowed(worst),
            index=index,
            got=worst.got,
            expected=worst.expected,
            bound=max(map(self.allowed, self.kept), default=math.inf),
            nearby=min(self.nearby, self.count),
            unclear=min(self.unclear, self.count),
        )

    def allowed(self, probe: Probe) -> float:
        """The largest relative error that passes; infinite where nothing is known."""
        known = math.isfinite(probe.error) and math.isfinite(self.scale)
        return self.tolerance + probe.error / self.scale if known else math.inf

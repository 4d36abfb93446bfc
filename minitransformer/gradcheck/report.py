"""The results of a gradient check, tensor by tensor, for people and for programs."""

import dataclasses
import math
from typing import Any

COMPLEX_STEP = "complex step"
RICHARDSON = "Richardson"


@dataclasses.dataclass(frozen=True)
class TensorCheck:
    """One gradient compared with the derivative: an input's or a parameter's."""

    name: str
    shape: tuple
    method: str  # "complex step" or "Richardson"
    directions: int  # 0: entry by entry; else the number of random directions
    error: float  # the worst relative error
    tolerance: float  # the largest error that passes
    index: tuple  # of the worst entry, or (number of the direction,)
    got: float  # there, by the backward pass
    expected: float  # there, by the derivative

    @property
    def passed(self) -> bool:
        """Whether the error is within the tolerance (NaN is not)."""
        return self.error <= self.tolerance

    def __str__(self) -> str:
        where = f"{self.name}{list(self.index)}" if not self.directions else f"<d{self.name}, v{self.index[0]}>"
        verdict = "ok" if self.passed else f"WRONG at {where}: got {self.got:.10g}, expected {self.expected:.10g}"
        scope = "every entry" if not self.directions else f"{self.directions} directions"
        return f"{self.name:<40} {self.shape!s:<16} {self.method}, {scope:<13} {self.error:8.1e}  {verdict}"


@dataclasses.dataclass(frozen=True)
class Report:
    """All tensors of one check. `reason` says why the method was chosen."""

    name: str
    checks: tuple[TensorCheck, ...]
    reason: str

    @property
    def passed(self) -> bool:
        """Whether there was a tensor to check, and all passed."""
        return bool(self.checks) and all(check.passed for check in self.checks)

    @property
    def worst(self) -> TensorCheck:
        """The check with the largest error; a NaN counts as largest."""
        return max(self.checks, key=lambda check: float("inf") if check.error != check.error else check.error)

    @property
    def failures(self) -> tuple[TensorCheck, ...]:
        """The checks that did not pass."""
        return tuple(check for check in self.checks if not check.passed)

    def __str__(self) -> str:
        verdict = "passed" if self.passed else f"{len(self.failures)} of {len(self.checks)} gradients WRONG"
        return "\n".join([f"{self.name}: {verdict} ({self.reason})", *(f"  {check}" for check in self.checks)])

    def as_dict(self) -> dict[str, Any]:
        """The report as plain numbers and strings, for JSON."""
        checks = [{**_finite(dataclasses.asdict(check)), "passed": check.passed} for check in self.checks]
        return {"name": self.name, "passed": self.passed, "reason": self.reason, "checks": checks}


def _finite(fields: dict[str, Any]) -> dict[str, Any]:
    """The fields with None for NaN and infinity, which JSON lacks."""
    strange = {key for key, value in fields.items() if isinstance(value, float) and not math.isfinite(value)}
    return {key: None if key in strange else value for key, value in fields.items()}

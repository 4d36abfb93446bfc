"""The results of a gradient check, tensor by tensor, for people and for programs."""

import dataclasses
import math
from typing import Any

from minitransformer.system.terminal import width

COMPLEX_STEP = "complex step"
RICHARDSON = "Richardson"
OK, WRONG, CANNOT_TELL = "ok", "WRONG", "cannot tell"


@dataclasses.dataclass(frozen=True)
class TensorCheck:
    """One gradient compared with the derivative: an input's or a parameter's."""

    name: str
    shape: tuple
    method: str  # "complex step" or "Richardson"
    directions: int  # 0: entry by entry; else the number of random directions
    error: float  # the worst relative error
    tolerance: float  # the largest error that passes there; infinite if there is no derivative to compare with
    index: tuple  # of the worst entry, or (number of the direction,)
    got: float  # there, by the backward pass
    expected: float  # there, by the derivative
    bound: float = 0.0  # the largest relative error that could have passed in any entry
    nearby: int = 0  # entries at which differences do not converge, at a kink for example; checked at a point nearby
    unclear: int = 0  # entries of which no point can tell

    @property
    def verdict(self) -> str:
        """OK, WRONG (an error above its tolerance, or NaN), or CANNOT_TELL."""
        if math.isinf(self.tolerance):
            return CANNOT_TELL
        if not self.error <= self.tolerance:
            return WRONG
        return CANNOT_TELL if self.unclear else OK

    @property
    def passed(self) -> bool:
        """Whether the verdict is OK."""
        return self.verdict == OK

    def __str__(self) -> str:
        scope = "every entry" if not self.directions else f"{self.directions} directions"
        error = f"{self.error:8.1e}" if math.isfinite(self.tolerance) else f"{'-':>8}"
        return f"{self.name:<40} {self.shape!s:<16} {self.method}, {scope:<13} {error}  {self._explain()}"

    def _explain(self) -> str:
        """The verdict, with what one needs to know about it."""
        count = math.prod(self.shape)
        if self.verdict == WRONG:
            where = f"{self.name}{list(self.index)}" if not self.directions else f"<d{self.name}, v{self.index[0]}>"
            return f"WRONG at {where}: got {self.got:.10g}, expected {self.expected:.10g}"
        notes = [f"bound {self.bound:.0e}"] if self.method == RICHARDSON and self.verdict == OK else []
        if self.nearby:
            notes.append(f"no derivative at {self.nearby} of {count} entries, so checked at a point nearby")
        if self.unclear:
            notes.append(f"no derivative at {self.unclear} of {count} entries, nor at points nearby")
        return f"{self.verdict} ({'; '.join(notes)})" if notes else self.verdict


@dataclasses.dataclass(frozen=True)
class Report:
    """All tensors of one check, and what else was found out about a layer. All texts are sentences."""

    name: str
    checks: tuple[TensorCheck, ...]
    reason: str  # why the method was chosen
    broken: tuple[str, ...] = ()  # promises of the layer protocol that do not hold: the layer is WRONG
    doubts: tuple[str, ...] = ()  # why the layer may be wrong although its gradients are right
    clues: tuple[str, ...] = ()  # how the gradients that are WRONG differ from the right ones
    notes: tuple[str, ...] = ()  # what was checked

    @property
    def verdict(self) -> str:
        """WRONG if anything is, else CANNOT_TELL if it is for any tensor, in doubt, or without tensors; else OK."""
        verdicts = {check.verdict for check in self.checks} or {CANNOT_TELL}
        verdicts |= {WRONG} if self.broken else {CANNOT_TELL} if self.doubts else set()
        return next(verdict for verdict in (WRONG, CANNOT_TELL, OK) if verdict in verdicts)

    @property
    def passed(self) -> bool:
        """Whether there was a tensor to check, and all are OK."""
        return self.verdict == OK

    @property
    def worst(self) -> TensorCheck:
        """The check with the largest error. A NaN counts as largest, a check without any derivative as smallest."""
        return max(self.checks, key=badness)

    @property
    def error(self) -> float:
        """The largest error. It means nothing unless `is_measured`."""
        return self.worst.error

    @property
    def is_measured(self) -> bool:
        """Whether there was a derivative to compare with."""
        return bool(self.checks) and not math.isinf(self.worst.tolerance)

    @property
    def failures(self) -> tuple[TensorCheck, ...]:
        """The checks that are WRONG."""
        return tuple(check for check in self.checks if check.verdict == WRONG)

    @property
    def unclear(self) -> tuple[TensorCheck, ...]:
        """The checks that cannot tell."""
        return tuple(check for check in self.checks if check.verdict == CANNOT_TELL)

    def __str__(self) -> str:
        verdict = "passed"
        if self.failures:
            verdict = f"{len(self.failures)} of {len(self.checks)} gradients WRONG"
        elif self.broken:
            verdict = "WRONG, it breaks the layer protocol"
        elif self.unclear or not self.checks:
            verdict = f"cannot tell for {len(self.unclear)} of {len(self.checks)} gradients"
        elif self.doubts:
            verdict = "cannot tell"
        texts = [f"  WRONG: {text}" for text in self.broken] + [f"  cannot tell: {text}" for text in self.doubts]
        lines = [*texts, *(f"  {check}" for check in self.checks), *(f"  -> {clue}" for clue in self.clues)]
        return "\n".join([f"{self.name}: {verdict} ({self.reason})", *lines, *(f"  {note}" for note in self.notes)])

    def row(self) -> str:
        """One line of a table, and the notes below it. It names the method only if that is not the usual one."""
        bounds = [check.bound for check in self.checks if check.method == RICHARDSON]
        method = "" if self.worst.method == COMPLEX_STEP else f", {self.worst.method}"
        if bounds:
            method = f", {RICHARDSON}, bound {max(bounds):.0e}"
        row = row_of(self.name, f"{self.worst.error:8.1e}", f"ok{method}")
        return "\n".join([row, *(f"  {note}" for note in self.notes)])

    def as_dict(self) -> dict[str, Any]:
        """The report as plain numbers and strings, for JSON."""
        checks = [
            {**finite(dataclasses.asdict(check)), "passed": check.passed, "verdict": check.verdict}
            for check in self.checks
        ]
        return {
            "name": self.name,
            "passed": self.passed,
            "verdict": self.verdict,
            "reason": self.reason,
            "checks": checks,
            **{key: list(getattr(self, key)) for key in ("broken", "doubts", "clues", "notes")},
        }


def badness(check: TensorCheck) -> float:
    """What the worst check has most of."""
    if math.isinf(check.tolerance):
        return -1.0
    return math.inf if math.isnan(check.error) else check.error


def row_of(name: str, number: str, verdict: str) -> str:
    """A line of the table of all checks; in a narrow terminal the name has less room."""
    return f"{name:<{max(1, min(64, width() - 12 - len(verdict)))}} {number:>8}  {verdict}"


def finite(fields: dict[str, Any]) -> dict[str, Any]:
    """The fields with None for NaN and infinity, which JSON lacks."""
    strange = {key for key, value in fields.items() if isinstance(value, float) and not math.isfinite(value)}
    return {key: None if key in strange else value for key, value in fields.items()}

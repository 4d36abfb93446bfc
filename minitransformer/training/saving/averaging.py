"""Averaging weights over the end of training (paper section 6.1: the last 5 checkpoints, 20 for the big model).

Late in training the weights move around a minimum, at a distance that depends on the learning rate. Their mean is
closer to the minimum than any of them.
"""

from typing import Any, Protocol

from minitransformer.backend import to_device, to_host, xp
from minitransformer.checks import check_integer


class Averaging(Protocol):
    """What the training loop needs from an average of the weights."""

    def update(self, step: int, weights: xp.ndarray) -> None:
        """Add the weights (N,) after `step`."""

    def value(self) -> xp.ndarray | None:
        """The average (N,), or None if no weights were added."""

    def state(self) -> tuple[dict, dict]:
        """Arrays {name: array} on the host, and facts that JSON can hold, to save."""

    def load_state(self, arrays: dict, facts: dict) -> None:
        """Continue from what `state` returned."""


class AverageOfLast:
    """The mean of the last `count` sets of weights, `interval` steps apart, in a run of `steps` steps.

    The paper averages checkpoints that were written every 10 minutes (section 6.1); here the sets stay in memory.
    Raises ValueError unless all three numbers are at least 1.
    """

    def __init__(self, steps: int, count: int = 5, interval: int = 40) -> None:
        self.steps = check_integer("steps", steps, least=1)
        self.count = check_integer("count", count, least=1)
        self.interval = check_integer("interval", interval, least=1)
        self.snapshots: dict[int, xp.ndarray] = {}  # {step: the weights after it}

    def until(self, steps: int) -> "AverageOfLast":
        """The same sets of weights, with those to come the last of a run of `steps` steps."""
        other = AverageOfLast(steps, self.count, self.interval)
        other.snapshots = self.snapshots
        return other

    def includes(self, step: int) -> bool:
        """Whether the weights after `step` are among the last sets."""
        left = self.steps - step
        return 0 <= left < self.count * self.interval and left % self.interval == 0

    def update(self, step: int, weights: xp.ndarray) -> None:
        """Keep a copy of the weights (N,), if `step` is one of the last."""
        if self.includes(step):
            self.snapshots[step] = weights.copy()

    def value(self) -> xp.ndarray | None:
        """The mean (N,) of the sets kept, or None if there are none yet."""
        if not self.snapshots:
            return None
        first, *others = self.snapshots.values()
        total = first.copy()
        for snapshot in others:
            total += snapshot
        return total / len(self.snapshots)

    def state(self) -> tuple[dict, dict]:
        """The sets kept so far, and their steps."""
        arrays = {f"snapshots.{step}": to_host(snapshot) for step, snapshot in self.snapshots.items()}
        return arrays, {"snapshot_steps": list(self.snapshots)}

    def load_state(self, arrays: dict, facts: dict) -> None:
        """Continue from what `state` returned, without the sets that are not among the last of this run."""
        steps = filter(self.includes, facts["snapshot_steps"])
        self.snapshots = {step: to_device(arrays[f"snapshots.{step}"]) for step in steps}


class ExponentialAverage:
    """A running mean of the weights that forgets the old ones. Not in the paper.

    ema <- decay ema + (1 - decay) weights starts at 0, so after t updates its coefficients sum to 1 - decay^t. `value`
    divides by this sum, as Adam does. decay = 0.99 averages over about 100 steps. Raises ValueError unless
    0 <= decay < 1.
    """

    def __init__(self, decay: float) -> None:
        if not 0 <= decay < 1:
            raise ValueError(f"decay must be at least 0 and less than 1, got {decay}")
        self.decay, self.t = decay, 0
        self.mean: Any = 0.0  # (N,) after the first update

    def update(self, step: int, weights: xp.ndarray) -> None:
        """Add the weights (N,) after one more step."""
        self.mean = self.decay * self.mean + (1.0 - self.decay) * weights
        self.t += 1

    def value(self) -> xp.ndarray | None:
        """The average (N,), or None before the first update."""
        return self.mean / (1.0 - self.decay**self.t) if self.t else None

    def state(self) -> tuple[dict, dict]:
        """The mean, and the number of updates."""
        return ({"ema": to_host(self.mean)} if self.t else {}), {"ema_updates": self.t}

    def load_state(self, arrays: dict, facts: dict) -> None:
        """Continue from what `state` returned."""
        if facts["ema_updates"]:
            self.t, self.mean = facts["ema_updates"], to_device(arrays["ema"])

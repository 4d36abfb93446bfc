"""The training loop around the step of step.py:

    for each step:  batch, learning rate  ->  gradient, clip, optimizer  ->  whatever the caller does with the result

`train` in run.py is this loop, and around it a progress bar, the history, averages of the weights, evaluation, files to
resume from and Ctrl-C. How to share a batch among threads and processes is in parallel/, which makes `take_step` once,
before the loop; averages and checkpoints are in saving/, checks for NaN in watching/.
"""

import dataclasses
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from minitransformer.backend import xp
from minitransformer.training.step import Measured

LOG_INTERVAL = 20  # steps between two measurements of the accuracy: on a GPU, each one waits


@dataclasses.dataclass(frozen=True)
class Plan:
    """What a training does over time.

    Fields:
        steps: number of optimizer steps.
        schedule: schedule(step) is the learning rate of a step, counted from 1; without it the optimizer keeps its own.
        averaging: averages the weights over the end of training; run.py asks it, see saving/averaging.py.
    """

    steps: int
    schedule: Callable[[int], float] | None = None
    averaging: Any = None

    def at(self, step: int) -> "Plan":
        """The plan from `step` on, which begins now: the same, unless it follows a clock (recipes/clock.py)."""
        return self


class Taken(NamedTuple):
    """A step that has been taken."""

    step: int  # counted from 1
    plan: Plan
    batch: Any
    measured: Measured
    norm: xp.ndarray  # 0-d, of the gradient before clipping


def training_steps(
    batches: Iterator[Any],
    take_step: Callable[..., tuple[Measured, xp.ndarray]],
    optimizer: Any,
    plan: Plan,
    after: int = 0,
) -> Iterator[Taken]:
    """Take the steps of `plan` that come after the step `after`, and yield each one.

    take_step(batch, measure=...) is `step_with`, given its gradients and the optimizer.
    """
    step = after
    while step < plan.steps:
        step += 1
        batch = next(batches)
        plan = plan.at(step)
        if plan.schedule:
            optimizer.lr = plan.schedule(step)
        measured, norm = take_step(batch, measure=step % LOG_INTERVAL == 0 or step == plan.steps)
        yield Taken(step, plan, batch, measured, norm)

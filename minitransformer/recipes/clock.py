"""Training until a time: the number of steps, and with it the learning rate, follows the clock."""

import time
from collections.abc import Callable

from minitransformer.recipes.processes import of_root

PLANS = 20  # times that the number of steps is set, evenly spread


class Clock:
    """The learning rate of each step of a training that is to end at the time `end`, by time.perf_counter.

    with_steps(n) sets the number of steps to n, and returns the schedule for it. It is called when each 20th of the
    steps has been taken, with as many as fit if the rest goes on as fast as all so far, evaluations included. In the
    last 20th nothing changes any more, because there the weights may be averaged.
    """

    def __init__(self, end: float, steps: int, with_steps: Callable[[int], Callable[[int], float]]) -> None:
        self.end, self.steps, self.with_steps = end, steps, with_steps
        self.schedule = with_steps(steps)
        self.begun, self.first, self.next = 0.0, 0, 0

    def __call__(self, step: int) -> float:
        """The learning rate of `step`, which begins now."""
        now, interval = time.perf_counter(), max(1, self.steps // PLANS)
        if not self.first:
            self.begun, self.first, self.next = now, step, step + interval
        if self.next <= step <= self.steps - interval:
            fit = (step - self.first) * (self.end - now) / (now - self.begun)
            self.steps = of_root(step - 1 + max(1, round(fit)))
            self.schedule, self.next = self.with_steps(self.steps), step + interval
        return self.schedule(step)

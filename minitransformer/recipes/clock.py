"""Training until a time: the number of steps, and with it the learning rate, follows the clock."""

import dataclasses
import time
from collections.abc import Callable

from minitransformer.training.loop import Plan
from minitransformer.training.parallel.connect import connect

PLANS = 20  # times that a plan is made, evenly spread


@dataclasses.dataclass(frozen=True)
class ClockedPlan(Plan):
    """The plan of a training that is to end at the time `end`, by time.perf_counter. Made with `until`.

    When each 20th of the steps has been taken, plan_for(n) makes another plan, of as many steps as fit if the rest goes
    on as fast as all so far, evaluations included. In the last 20th nothing changes any more, because there the weights
    may be averaged.
    """

    end: float = 0.0
    plan_for: Callable[[int], Plan] = Plan
    begun: float = 0.0  # when step `first` began
    first: int = 0
    next: int = 0  # the step at which the next plan is made

    def at(self, step: int) -> Plan:
        """See `Plan.at`."""
        now, interval = time.perf_counter(), max(1, self.steps // PLANS)
        if not self.first:
            return dataclasses.replace(self, begun=now, first=step, next=step + interval)
        if not self.next <= step <= self.steps - interval:
            return self
        fit = (step - self.first) * (self.end - now) / (now - self.begun)
        steps = connect().collect(step - 1 + max(1, round(fit)))[0]  # that of the root
        return until(self.end, steps, self.plan_for, begun=self.begun, first=self.first, next=step + interval)


def until(end: float, steps: int, plan_for: Callable[[int], Plan], **begun: float) -> ClockedPlan:
    """The plan that plan_for(steps) makes, as one that follows the clock and ends at the time `end`."""
    plan = plan_for(steps)
    return ClockedPlan(plan.steps, plan.schedule, plan.averaging, end, plan_for, **begun)  # type: ignore[arg-type]

"""Training until a time: the steps and the learning rate follow a clock that the tests set."""

import pytest

from minitransformer.recipes import clock
from minitransformer.recipes.clock import until
from minitransformer.training.loop import Plan


def trained(seconds_of, end, guess, monkeypatch):
    """(time at the end, steps taken, the numbers of steps that were set) if step n takes seconds_of(n)."""
    now, planned = 0.0, []
    monkeypatch.setattr(clock.time, "perf_counter", lambda: now)

    def plan_for(steps):
        planned.append(steps)
        return Plan(steps, lambda step: step / steps)  # the share of the schedule that is over

    rates, plan = [], until(end, guess, plan_for)
    while len(rates) < plan.steps:
        plan = plan.at(len(rates) + 1)
        rates.append(plan.schedule(len(rates) + 1))
        now += seconds_of(len(rates))
    return now, rates, planned


@pytest.mark.parametrize("guess", [100, 1000, 4000])
def test_training_ends_at_the_time_whatever_was_guessed_and_the_schedule_with_it(guess, monkeypatch):
    now, rates, planned = trained(lambda step: 0.1, 100.0, guess, monkeypatch)
    assert now == pytest.approx(100, rel=0.01)
    assert rates[-1] == 1
    assert planned[-1] == len(rates)


def test_a_machine_that_becomes_slower_takes_fewer_steps_and_no_more_time(monkeypatch):
    now, rates, _ = trained(lambda step: 0.1 if step < 500 else 0.3, 100.0, 1000, monkeypatch)
    assert now == pytest.approx(100, rel=0.1)
    assert 600 < len(rates) < 750
    assert rates[-1] == 1


def test_no_time_at_all_is_one_step(monkeypatch):
    assert len(trained(lambda step: 5.0, 1.0, 1, monkeypatch)[1]) == 1

"""The benchmark of several processes: all ways to compute a step take turns, and its table says what was measured."""

import pytest

from experiments import processes
from experiments.measuring.steps import SIZES
from tests.experiments.conftest import TIMES
from tests.ranks import in_ranks


def test_all_ways_take_turns_in_all_processes(monkeypatch):
    monkeypatch.setattr(processes, "TURN", 0.001)
    monkeypatch.setitem(SIZES, "little", SIZES["tiny"]._replace(d_model=8, d_ff=8, num_layers=1, batch=4))
    first, second = in_ranks(2, lambda communicator: processes.time_steps("little", 0.01, communicator))
    assert list(first) == list(second) == list(TIMES)
    assert {len(times) for times in (*first.values(), *second.values())} == {len(first["sum"])}
    assert all(time > 0 for times in first.values() for time in times)
    assert set(second["1 process"] + second["2 threads"]) == {0.0}  # the second process waits meanwhile
    assert all(time > 0 for name in ("2 processes", "sharded", "sum") for time in second[name])


def test_speed_ups_are_medians_of_ratios_of_the_same_turn():
    row = processes.summary("tiny", TIMES)
    assert row["speed-up"] == {"1 process": 1.0, "2 threads": 1.5, "2 processes": 2.0, "sharded": 1.25}
    assert row["2 threads"] == pytest.approx(150.0)

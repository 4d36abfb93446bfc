"""The benchmark of several processes: all ways to compute a step take turns, and its table says what was measured."""

import json

import pytest

from minitransformer.bench import SIZES, processes
from tests.cli.run import run
from tests.ranks import in_ranks

TIMES = {
    "1 process": [0.2, 0.2],
    "2 threads": [0.1, 0.2],
    "2 processes": [0.1, 0.1],
    "sharded": [0.4, 0.1],
    "sum": [0.01] * 2,
}


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


def test_the_command_prints_a_row_for_each_size_and_a_table_of_the_memory(capsys, monkeypatch):
    def start(launcher, count, module, call):
        return json.dumps(TIMES if "times" in call else [2e6 / count, 1e6 / count])

    monkeypatch.setattr(processes, "find_mpiexec", lambda command: "mpiexec")
    monkeypatch.setattr(processes, "call_in_processes", start)
    status, out, err = run(capsys, "bench", "tiny", "small", "--processes", "--memory", "--json")
    assert (status, err) == (0, "")
    assert [line.split()[0] for line in out.splitlines()[1:3]] == ["tiny", "small"]
    rows = json.loads(out.splitlines()[-1])["rows"]
    assert [row["size"] for row in rows] == ["tiny", "small"] + ["tiny"] * 3 + ["small"] * 3
    assert [row["processes"] for row in rows[2:5]] == [1, 2, 4]
    assert rows[3]["peak_sharded"] == 1e6
